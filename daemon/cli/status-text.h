/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A status reply, for people. */
#ifndef BP_STATUS_TEXT_H
#define BP_STATUS_TEXT_H

#include <stdio.h>

#include <json-c/json.h>

/* Members that are absent print as 0 or "-". */
void status_print (struct json_object *status, FILE *fp);

#endif /* BP_STATUS_TEXT_H */

/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Our codes and the protocol's. */
#include <config.h>

#include <errno.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "daemon/front/request.h"
#include "lib/base/range.h"

struct code {
  int status;
  uint32_t error;
};

ParameterizedTestParameters (nbd_errno, each_code_has_one_nbd_error)
{
  static struct code codes[] = {
    { 0, 0 },
    { -EBADMSG, 5 },
    { -EIO, 5 },
    { -EPROTO, 5 },
    { -ENOENT, 5 },
    { -ETIMEDOUT, 5 },
    { -EPERM, 1 },
    { -ENOMEM, 12 },
    { -EINVAL, 22 },
  };

  return cr_make_param_array (struct code, codes, ARRAY_LEN (codes));
}

ParameterizedTest (struct code *code, nbd_errno, each_code_has_one_nbd_error)
{
  cr_assert_eq (nbd_errno (code->status), code->error,
                "%d is %u, wanted %u", code->status,
                nbd_errno (code->status), code->error);
}

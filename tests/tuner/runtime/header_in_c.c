/* The header as a C program reads it. SPDX-License-Identifier: Apache-2.0 */
#include "tuner/runtime/include/kernelwright.h"

kw_status find_with_nothing(void);

kw_status find_with_nothing(void) {
  const kw_value values[] = {{"M", 1}, {"N", 2}};
  kw_kernel* kernel = NULL;
  return kw_find(NULL, "double", values, sizeof values / sizeof values[0], KW_FIND_OTHER_DEVICE, &kernel);
}

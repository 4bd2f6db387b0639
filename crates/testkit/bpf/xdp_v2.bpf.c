// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The second version of an author's dataplane. */
#define LOOKUPS 32
#include "dataplane.h"

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The first version of an author's dataplane. */
#define LOOKUPS 1
#include "dataplane.h"

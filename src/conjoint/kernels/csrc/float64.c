/* Every kernel in double precision. */
#include "common.h"

#define REAL_IS_DOUBLE
#include "real.h"

#include "activation.h"
#include "aggregation.h"
#include "attention.h"
#include "projection.h"
#include "product.h"
#include "scaled.h"
#include "shares.h"
#include "structure.h"

#include "factors.h" /* which is made of parts of the others, as is the last */
#include "layer.h"

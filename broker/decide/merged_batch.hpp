/// The rows of many decisions as one batch.
#pragma once

#include <vector>

#include "broker/books/rows.hpp"

namespace leasehold::journal {

/// All rows in their order, without the rows of leases and extents that a later row replaces.
Batch merged(const std::vector<const Batch*>& batches);

}  // namespace leasehold::journal

/// Groups the lease words that a decision stores by worker: one StoreWords effect moves that
/// worker's counter once for all of them.
#pragma once

#include <map>
#include <vector>

#include "broker/decide/decision.hpp"

namespace leasehold {

using FlipsByWorker = std::map<AttachmentId, std::vector<effect::StoreWords::Flip>>;

void add_store_words(Decision& decision, FlipsByWorker flips);

}  // namespace leasehold

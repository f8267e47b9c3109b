#include "broker/decide/store_words.hpp"

namespace leasehold {

void add_store_words(Decision& decision, FlipsByWorker flips) {
  for (auto& [worker, words] : flips) {
    const WorkerId index = decision.state.workers.find(worker)->index;
    decision.add(effect::StoreWords{index, std::move(words), decision.now});
  }
}

}  // namespace leasehold

#include "tests/support/simt/predecessor.hpp"

#include <algorithm>
#include <utility>

#include "common/expects.hpp"

namespace leasehold::simt {

Predecessor::Predecessor(std::vector<UnfinishedMemory> unfinished)
    : unfinished_(std::move(unfinished)) {
  for (UnfinishedMemory& one : unfinished_) {
    // Four of these bytes are a NaN.
    if (one.before.empty()) one.before.assign(one.memory.size(), std::byte{0xFF});
    expects(one.before.size() == one.memory.size(), "unfinished memory has one content");
  }
}

void Predecessor::begin() {
  if (!written_.empty()) return;
  for (const UnfinishedMemory& one : unfinished_) {
    written_.emplace_back(one.memory.begin(), one.memory.end());
    std::ranges::copy(one.before, one.memory.begin());
  }
}

void Predecessor::end() {
  for (std::size_t i = 0; i < written_.size(); ++i)
    std::ranges::copy(written_[i], unfinished_[i].memory.begin());
  written_.clear();
}

}  // namespace leasehold::simt

/// Counts from the broker's records, by code of its own, which texts are published under adapters.
#pragma once

#include <map>
#include <string>

#include "broker/books/state.hpp"
#include "broker/decide/event.hpp"
#include "tests/simulation/coverage.hpp"

namespace leasehold::simulation {

struct PublishedText {
  std::string adapter;
  std::uint32_t version = 0;
  AttachmentId worker;
};
using PublishedTexts = std::map<LeaseId, PublishedText>;

/// The live leases of texts under adapters.
PublishedTexts published_texts(const State& state);

/// After a decision; `before`: what was live before it.
/// - A text is live only while its version is the newest shared one, or loaded on its worker.
/// - Until then nothing ends it because of its version.
/// - A revocation of the adapter has ended it.
void check_published_texts(const PublishedTexts& before, const State& state, const Event& event,
                           Coverage& coverage);

}  // namespace leasehold::simulation

#include "worker/schedule/embedding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/expects.hpp"

namespace leasehold {
namespace {

Result<Pooling> pooling_of(const wire::Embedding& asked, const EmbeddingModel& model) {
  const std::string& name = asked.pooling.empty() ? model.pooling : asked.pooling;
  if (name == "mean") return Pooling::Mean;
  if (name == "last" || name == "none") return Pooling::Last;
  // "cls" takes the state of the first token, which in a causal model knows no other token.
  return fail(Errc::BadRequest,
              fmt::format("pooling: the model's file asks for '{}', which this build does not "
                          "compute; send last or mean",
                          name));
}

Result<void> check_dimensions(std::uint32_t dimensions, const EmbeddingModel& model) {
  if (dimensions == 0 || dimensions == model.width) return {};
  if (dimensions > model.width) {
    return fail(Errc::BadRequest,
                fmt::format("dimensions is {}, and the model's vectors have {}; send a smaller "
                            "number",
                            dimensions, model.width));
  }
  if (model.is_matryoshka) return {};
  return fail(Errc::BadRequest,
              fmt::format("dimensions is {}, and only the whole vector of {} is an embedding of "
                          "this model; leave dimensions out, or start the worker of a model that "
                          "was trained for fewer with --matryoshka",
                          dimensions, model.width));
}

}  // namespace

void PooledStates::add(std::span<const float> state) {
  if (sums_.empty()) sums_.resize(state.size());
  expects(state.size() == sums_.size(), "all hidden states have the model's width");
  for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += static_cast<double>(state[i]);
  ++count_;
}

bool PooledStates::is_finite() const {
  return std::ranges::all_of(sums_, [](double sum) { return std::isfinite(sum); });
}

/// The number of states divides the length as it divides each element, so it cancels.
std::vector<float> PooledStates::embedding(std::uint32_t dimensions) const {
  expects(count_ > 0, "an embedding has at least one state");
  const std::size_t kept = dimensions == 0 ? sums_.size() : dimensions;
  const std::span<const double> sums = std::span(sums_).first(std::min(kept, sums_.size()));
  double squares = 0.0;
  for (const double sum : sums) squares += sum * sum;
  const double length = std::sqrt(squares);  // IEEE 754 defines its result exactly
  std::vector<float> embedding;
  embedding.reserve(sums.size());
  for (const double sum : sums)
    embedding.push_back(static_cast<float>(length > 0.0 ? sum / length : sum));
  return embedding;
}

Result<EmbeddingRequest> parse_embedding(const wire::Embedding& asked,
                                         const EmbeddingModel& model) {
  TRY(check_dimensions(asked.dimensions, model));
  const Pooling pooling = TRY(pooling_of(asked, model));
  return EmbeddingRequest{.pooling = pooling, .dimensions = asked.dimensions};
}

}  // namespace leasehold

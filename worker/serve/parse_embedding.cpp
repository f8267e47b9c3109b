#include "worker/serve/parse_embedding.hpp"

#include <fmt/format.h>

namespace leasehold {
namespace {

/// With Cls the first token would stand for the whole text, but it attends only to itself.
Result<Pooling> pooling_of(const wire::Embedding& asked, const EmbeddingModel& model) {
  if (asked.pooling == name(Pooling::Mean)) return Pooling::Mean;
  if (asked.pooling == name(Pooling::Last)) return Pooling::Last;
  switch (model.pooling) {
    case Pooling::Mean:
      return Pooling::Mean;
    case Pooling::None:
    case Pooling::Last:
      return Pooling::Last;
    case Pooling::Cls:
    case Pooling::Rank:
      break;
  }
  return fail(Errc::BadRequest,
              fmt::format("pooling: the model's file asks for '{}', which this build does not "
                          "compute; send last or mean",
                          name(model.pooling)));
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
              fmt::format("dimensions is {}, and the model's vectors are meaningful as a whole, "
                          "with {}; leave it out, or start the worker of a model that was trained "
                          "for fewer with --matryoshka",
                          dimensions, model.width));
}

}  // namespace

Result<EmbeddingParams> parse_embedding(const wire::Embedding& asked, const EmbeddingModel& model) {
  TRY(check_dimensions(asked.dimensions, model));
  return EmbeddingParams{.pooling = TRY(pooling_of(asked, model)), .dimensions = asked.dimensions};
}

}  // namespace leasehold

/// Reads what a request asks of an embedding. Pure.
#pragma once

#include <cstdint>

#include "ipc/control/messages/tenant.hpp"
#include "worker/schedule/embedding.hpp"

namespace leasehold {

/// What a model's embeddings are like.
struct EmbeddingModel {
  Pooling pooling = Pooling::None;  ///< As its file says.
  std::uint32_t width = 0;          ///< Elements of a whole vector.
  /// The leading elements of a vector are an embedding, too (Matryoshka Representation Learning,
  /// Kusupati et al. 2022).
  bool is_matryoshka = false;
};

/// Errors: BadRequest for dimensions that the model's vectors do not have, and for a model whose
/// file asks for a pooling that this build does not compute, unless the request names another.
Result<EmbeddingParams> parse_embedding(const wire::Embedding& asked, const EmbeddingModel& model);

}  // namespace leasehold

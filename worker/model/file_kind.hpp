/// Whether a well-formed GGUF file is a model, and if not, what it is.
#pragma once

#include "worker/gguf/gguf.hpp"

namespace leasehold {

/// Errors: UnsupportedModel for an adapter, a control vector, a multimodal projector, an importance
/// matrix, a file that has a vocabulary only, and any other `general.type` but "model". The error
/// says what the file is and which one to give instead.
/// Source: `general.type` and `adapter.type` of the GGUF specification.
Result<void> check_is_model(const GgufFile& file);

}  // namespace leasehold

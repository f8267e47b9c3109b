/// Checks whether a well-formed GGUF file is a model, and if not, determines what it is.
#pragma once

#include "kernels/model/gguf/gguf.hpp"

namespace leasehold {

/// Errors: UnsupportedModel for an adapter, a control vector, a multimodal projector, an importance
/// matrix, a file with only a vocabulary, and any other `general.type` than "model". The error
/// describes the file and the kind of file to use instead.
/// Source: `general.type` and `adapter.type` of the GGUF specification.
Result<void> check_is_model(const GgufFile& file);

}  // namespace leasehold

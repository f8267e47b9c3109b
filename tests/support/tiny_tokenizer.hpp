/// The tokenizer of `tiny_llama`.
#pragma once

#include "tests/support/gguf_builder.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold::testing {

inline Tokenizer tiny_tokenizer() {
  const TemporaryFile file(tiny_llama().bytes());
  return *Tokenizer::from_metadata(*GgufFile::open(file.path()));
}

/// Its token of one byte.
constexpr TokenId byte_token(char byte) {
  return 3 + static_cast<unsigned char>(byte);
}

}  // namespace leasehold::testing

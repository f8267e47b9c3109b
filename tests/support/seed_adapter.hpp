/// The smallest model that every kind of adapter fits, and adapters of it: seeds for fuzzing, and
/// files whose bytes a test changes.
#pragma once

#include <string>

#include "kernels/model/config.hpp"
#include "tools/make_model/adapter.hpp"

namespace leasehold::testing {

/// What a worker reads from the model's file, as far as adapters are concerned. Rows of 32 are
/// whole blocks of Q8_0.
inline ModelConfig seed_config() {
  ModelConfig config{};
  config.architecture = "llama";
  config.n_layers = 1;
  config.n_embd = 32;
  config.n_heads = 2;
  config.layers = {{.n_kv_heads = 1, .head_dim = 16, .n_ff = 32}};
  return config;
}

inline make_model::AdapterRequest seed_adapter(TensorType type, make_model::AdapterForm form) {
  return {.model = {.shape = {.layers = 1,
                              .embd = 32,
                              .heads = 2,
                              .kv_heads = 1,
                              .ffn = 32,
                              .vocab = 259,
                              .context = 64}},
          .ranks = {2, 1, 0, 0, 0, 0, 3},
          .type = type,
          .form = form};
}

/// The committed seeds.
struct AdapterSeed {
  const char* name;
  TensorType type;
  make_model::AdapterForm form;
};
inline constexpr AdapterSeed kAdapterSeeds[] = {
    {"gguf-f16", TensorType::F16, make_model::AdapterForm::Gguf},
    {"gguf-q8_0", TensorType::Q8_0, make_model::AdapterForm::Gguf},
    {"peft-f32", TensorType::F32, make_model::AdapterForm::Peft},
    {"peft-bf16", TensorType::BF16, make_model::AdapterForm::Peft},
};

/// The input of the fuzz target for an adapter at `path`. `bytes_of(path)` reads a file.
template <class BytesOf>
std::string adapter_seed_bytes(make_model::AdapterForm form, const std::string& path,
                               BytesOf bytes_of) {
  if (form == make_model::AdapterForm::Gguf) return std::string(1, 0) + bytes_of(path);
  const std::string config = bytes_of(path + "/adapter_config.json");
  const char size[] = {static_cast<char>(config.size()), static_cast<char>(config.size() >> 8)};
  return std::string(1, 1) + std::string(size, 2) + config +
         bytes_of(path + "/adapter_model.safetensors");
}

}  // namespace leasehold::testing

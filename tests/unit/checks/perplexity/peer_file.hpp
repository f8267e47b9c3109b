/// Files as llama.cpp's llama-perplexity writes them.
#pragma once

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/checks/local_model/local_model.hpp"
#include "tests/checks/perplexity/token_odds.hpp"
#include "tests/support/required.hpp"
#include "tests/support/temporary_directory.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold::testing {

/// A file of `llama-perplexity --kl-divergence-base` in parts.
struct PeerFile {
  std::string magic = "_logits_";
  std::int32_t window = 0;
  std::int32_t n_vocab = 0;
  std::int32_t windows = 0;
  std::vector<TokenId> tokens;
  std::vector<CodedOdds> rows;

  std::string bytes() const {
    std::string all = magic;
    append(all, &window, 1);
    append(all, &n_vocab, 1);
    append(all, &windows, 1);
    append(all, tokens.data(), tokens.size());
    for (const CodedOdds& row : rows) {
      append(all, &row.scale, 1);
      append(all, &row.lowest, 1);
      append(all, row.codes.data(), row.codes.size());
      if (row.codes.size() % 2 == 1) all.append(2, '\0');
    }
    return all;
  }
  void write(const std::string& path) const {
    const std::string all = bytes();
    std::ofstream(path, std::ios::binary) << all;
  }

 private:
  template <class T>
  static void append(std::string& all, const T* values, std::size_t n) {
    all.append(reinterpret_cast<const char*>(values), n * sizeof(T));
  }
};

/// What a peer writes that computes as this engine does.
inline PeerFile computed_file(const std::string& model_path, const std::string& text,
                              std::uint32_t window, KvType kv_type, Arithmetic arithmetic,
                              std::uint32_t context = 256) {
  const auto tokenizer = required(Tokenizer::from_metadata(required(GgufFile::open(model_path))));
  PeerFile file{.window = static_cast<std::int32_t>(window),
                .tokens = required(tokenizer.encode(text))};
  file.n_vocab = static_cast<std::int32_t>(tokenizer.n_vocab());
  file.windows = static_cast<std::int32_t>(file.tokens.size() / window);
  file.tokens.resize(file.tokens.size() / window * window);
  const auto model = required(LocalModel::load(
      {.model_path = model_path,
       .kv_type = kv_type,
       .arithmetic = arithmetic,
       .positions = window,
       .modify_config = [context](ModelConfig& config) { config.n_context = context; }}));
  for (std::size_t at = 0; at < file.tokens.size(); at += window) {
    model->restart(0);
    for (std::uint32_t i = 0; i + 1 < window; ++i) {
      const bool is_bos = i == 0 && file.tokens.front() == tokenizer.bos();
      const LocalRow row{.token = is_bos ? *tokenizer.bos() : file.tokens[at + i]};
      required(model->forward({&row, 1}));
      if (i >= window / 2) file.rows.push_back(encode_odds(log_probabilities(model->logits(0))));
    }
  }
  return file;
}

}  // namespace leasehold::testing

#include "worker/text/tokenizer/stream_decoder.hpp"

#include <utility>

#include "common/utf8.hpp"

namespace leasehold {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

}  // namespace

std::string StreamDecoder::push(TokenId token) {
  std::string_view piece = tokenizer_->piece(token);
  if (token == tokenizer_->bos()) after_bos_ = tokenizer_->adds_space_prefix();
  if (piece.empty()) return {};
  if (std::exchange(after_bos_, false) && piece.front() == ' ') piece.remove_prefix(1);
  held_ += piece;
  return take_complete_characters();
}

std::string StreamDecoder::finish() {
  after_bos_ = false;
  return std::exchange(held_, {}).empty() ? std::string() : std::string(kReplacement);
}

std::string StreamDecoder::take_complete_characters() {
  std::string whole;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Utf8Step step = next_utf8(rest);
    if (step.kind == Utf8Kind::Incomplete) break;
    whole += step.kind == Utf8Kind::Character ? rest.substr(0, step.size_bytes) : kReplacement;
    rest.remove_prefix(step.size_bytes);
  }
  held_ = std::string(rest);
  return whole;
}

}  // namespace leasehold

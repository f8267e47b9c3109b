/// leasehold-tokenize: converts text to the token ids of a model, and back.
///
/// Exit codes: 0 done, 2 wrong usage, otherwise the code of the error (common/errc.hpp).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
#include <string>

#include "common/cli/command_line.hpp"
#include "common/cli/version.hpp"
#include "common/machine/text_file.hpp"
#include "worker/text/tokenizer/stream_decoder.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold::tokenize {
namespace {

constexpr std::size_t kMaxInputBytes = 64 << 20;

struct Options {
  std::string model;
  std::optional<std::string> input;
  bool decode = false;
  bool special = false;
};

void declare(CLI::App& app, Options& options) {
  app.set_version_flag("--version", "leasehold-tokenize " + std::string(version()));
  app.add_option("--model", options.model, "Model file (GGUF)")->required();
  app.add_flag("--decode", options.decode, "Convert token ids to text");
  app.add_flag("--special", options.special,
               "Read names of control tokens as tokens; with --decode, print them");
  app.add_option("input", options.input,
                 "Text, or token ids separated by spaces; default: read from stdin");
}

Result<TokenId> token_from(const Tokenizer& tokenizer, std::string_view word) {
  TokenId token = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), token);
  if (error != std::errc{} || end != word.data() + word.size() || !tokenizer.contains(token))
    return fail(Errc::BadRequest,
                fmt::format("\"{}\" is not a token id; give a number from 0 to {}", printable(word),
                            tokenizer.n_vocab() - 1));
  return token;
}

Result<std::string> decoded(const Tokenizer& tokenizer, std::string_view ids, bool special) {
  constexpr std::string_view kBetween = " \t\r\n,";
  StreamDecoder decoder(tokenizer);
  std::string text;
  while (true) {
    ids.remove_prefix(std::min(ids.find_first_not_of(kBetween), ids.size()));
    if (ids.empty()) return text + decoder.finish();
    const std::string_view word = ids.substr(0, ids.find_first_of(kBetween));
    const TokenId token = TRY(token_from(tokenizer, word));
    const bool is_named = special && tokenizer.piece(token).empty();
    text += decoder.push(token);
    if (is_named) text += tokenizer.text(token);
    ids.remove_prefix(word.size());
  }
}

Result<std::string> convert(const Options& options) {
  const GgufFile file = TRY(GgufFile::open(options.model));
  const Tokenizer tokenizer = TRY(Tokenizer::from_metadata(file));
  const std::string input = options.input ? *options.input : TRY(read_text_stdin(kMaxInputBytes));
  if (options.decode) return decoded(tokenizer, input, options.special);
  const auto special = options.special ? SpecialTokens::AsTokens : SpecialTokens::AsText;
  return fmt::format("{}\n", fmt::join(TRY(tokenizer.encode(input, special)), " "));
}

int run(int argc, char** argv) {
  CLI::App app("Convert text to the token ids of a model, and back", "leasehold-tokenize");
  Options options;
  declare(app, options);
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  const Result<std::string> text = convert(options);
  if (!text) return print_error(app.get_name(), text.error());
  std::cout << *text;
  return finish_program(app.get_name(), kExitOk);
}

}  // namespace
}  // namespace leasehold::tokenize

int main(int argc, char** argv) {
  return leasehold::tokenize::run(argc, argv);
}

#include "tools/brokerctl/prefix_text.hpp"

#include "common/machine/text_file.hpp"
#include "common/utf8.hpp"
#include "ipc/control/messages/operator.hpp"

namespace leasehold::brokerctl {

Result<std::string> read_prefix_text(const std::string& file) {
  constexpr std::size_t kMostBytes = wire::PrefixPublish::kMaxTextBytes;
  const bool is_stdin = file == "-";
  std::string text = TRY(is_stdin ? read_text_stdin(kMostBytes) : read_text_file(file, kMostBytes));
  const std::string source = is_stdin ? "stdin" : file;
  if (text.empty())
    return fail(Errc::BadRequest, source + " is empty; --file names the text to publish");
  if (!is_utf8(text))
    return fail(Errc::BadRequest, source + " is not UTF-8 text; --file takes no other encoding");
  return text;
}

}  // namespace leasehold::brokerctl

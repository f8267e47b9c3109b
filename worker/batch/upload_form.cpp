#include "worker/batch/upload_form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "common/utf8.hpp"

namespace leasehold::batch {
namespace {

constexpr std::size_t kMaxHeadBytes = 8 << 10;
constexpr std::size_t kMaxFieldBytes = 1 << 10;
constexpr std::size_t kMaxFields = 16;
constexpr std::size_t kMaxBoundaryBytes = 70;
constexpr std::size_t kMaxFilenameBytes = 255;
constexpr std::string_view kHeadEnd = "\r\n\r\n";

std::unexpected<Error> malformed(std::string_view what) {
  return fail(Errc::BadRequest,
              fmt::format("the form is malformed: {}; send multipart/form-data with the parts "
                          "'purpose' and 'file'",
                          what));
}

std::string lower(std::string_view text) {
  std::string lowered(text);
  std::ranges::transform(lowered, lowered.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lowered;
}

/// The value of `name="value"` or `name=value` in a header value.
std::optional<std::string> parameter(std::string_view header, const std::string& name) {
  const std::string lowered = lower(header);
  for (std::size_t at = lowered.find(name + "="); at != std::string::npos;
       at = lowered.find(name + "=", at + 1)) {
    const bool is_start = at > 0 && (lowered[at - 1] == ' ' || lowered[at - 1] == ';');
    if (!is_start) continue;
    std::string_view rest = header.substr(at + name.size() + 1);
    if (!rest.starts_with('"')) return std::string(rest.substr(0, rest.find_first_of("; \t\r\n")));
    std::string value;
    for (std::size_t i = 1; i < rest.size() && rest[i] != '"'; ++i) {
      if (rest[i] == '\\' && i + 1 < rest.size()) ++i;
      value += rest[i];
    }
    return value;
  }
  return std::nullopt;
}

/// The value of Content-Disposition among the lines of a part's head; empty without it.
std::string_view disposition(std::string_view head) {
  constexpr std::string_view kName = "content-disposition:";
  while (!head.empty()) {
    const std::size_t end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    if (lower(line.substr(0, kName.size())) == kName) return line.substr(kName.size());
    head.remove_prefix(end == std::string_view::npos ? head.size() : end + 2);
  }
  return {};
}

}  // namespace

Result<std::string> boundary_of(std::string_view content_type) {
  constexpr std::string_view kType = "multipart/form-data";
  if (lower(content_type.substr(0, kType.size())) != kType) {
    return fail(Errc::BadRequest, fmt::format("Content-Type is '{}'; send {} with a boundary",
                                              printable_excerpt(content_type), kType));
  }
  auto boundary = parameter(content_type, "boundary");
  if (boundary && !boundary->empty() && boundary->size() <= kMaxBoundaryBytes)
    return *std::move(boundary);
  return fail(Errc::BadRequest,
              fmt::format("Content-Type '{}' has no boundary of 1 to {} characters",
                          printable_excerpt(content_type), kMaxBoundaryBytes));
}

Result<void> UploadForm::add(std::string_view bytes) {
  buffer_ += bytes;
  while (TRY(step())) continue;
  return {};
}

/// Returns false when the rest of the buffer needs more bytes.
Result<bool> UploadForm::step() {
  switch (at_) {
    case At::Preamble:
      return read_preamble();
    case At::AfterDelimiter:
      return after_delimiter();
    case At::PartHead:
      return read_head();
    case At::File:
    case At::Field:
      return read_content();
    case At::End:
      buffer_.clear();
      return false;
  }
  return false;
}

Result<bool> UploadForm::read_preamble() {
  const std::size_t found = buffer_.find(delimiter_);
  if (found == std::string::npos) {
    if (buffer_.size() > kMaxHeadBytes) return malformed("it does not begin with its boundary");
    return false;
  }
  buffer_.erase(0, found + delimiter_.size());
  at_ = At::AfterDelimiter;
  return true;
}

Result<bool> UploadForm::after_delimiter() {
  if (buffer_.size() < 2) return false;
  const bool ends = buffer_.starts_with("--");
  if (!ends && !buffer_.starts_with("\r\n")) return malformed("a boundary has no line of its own");
  // A head may be empty; with its line's end it always has the form that `read_head` looks for.
  if (ends) buffer_.erase(0, 2);
  at_ = ends ? At::End : At::PartHead;
  return true;
}

Result<bool> UploadForm::read_head() {
  const std::size_t end = buffer_.find(kHeadEnd);
  if (end == std::string::npos) {
    if (buffer_.size() > kMaxHeadBytes) return malformed("the head of a part is longer than 8 KiB");
    return false;
  }
  const std::string head = buffer_.substr(0, end);
  buffer_.erase(0, end + kHeadEnd.size());
  const std::string_view value = disposition(head);
  const auto name = parameter(value, "name");
  if (!name || name->empty()) return malformed("a part has no name");
  field_ = *name;
  at_ = field_ == "file" ? At::File : At::Field;
  if (at_ == At::File) {
    if (std::exchange(has_file_, true)) return malformed("it has two files");
    filename_ = parameter(value, "filename").value_or("").substr(0, kMaxFilenameBytes);
    if (!is_utf8(filename_)) return malformed("the filename is not UTF-8, or too long");
    return true;
  }
  if (fields_.size() >= kMaxFields) return malformed("it has more than 16 fields");
  if (!fields_.emplace(field_, "").second)
    return malformed(fmt::format("field '{}' is sent twice", printable_excerpt(field_)));
  return true;
}

/// A delimiter may be split between two pieces, so the end of the buffer is kept.
Result<bool> UploadForm::read_content() {
  const std::size_t found = buffer_.find(delimiter_);
  const bool is_whole = found != std::string::npos;
  const std::size_t kept = delimiter_.size() - 1;
  const std::size_t size = is_whole ? found : buffer_.size() - std::min(buffer_.size(), kept);
  TRY(take(std::string_view(buffer_).substr(0, size)));
  buffer_.erase(0, is_whole ? size + delimiter_.size() : size);
  if (is_whole) at_ = At::AfterDelimiter;
  return is_whole;
}

Result<void> UploadForm::take(std::string_view content) {
  if (content.empty()) return {};
  if (at_ == At::File) return sink_(content);
  std::string& value = fields_[field_];
  if (value.size() + content.size() > kMaxFieldBytes)
    return malformed(fmt::format("field '{}' is longer than 1 KiB", printable_excerpt(field_)));
  value += content;
  return {};
}

Result<void> UploadForm::finish() const {
  if (at_ != At::End) return malformed("its last boundary is missing, so it was cut off");
  if (!has_file_) return malformed("it has no file");
  return {};
}

}  // namespace leasehold::batch

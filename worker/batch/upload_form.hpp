/// Reads the body of a file upload, multipart/form-data, in pieces of any size.
///
/// The bytes of the part "file" go to a sink as they arrive; other parts are short fields. Memory:
/// the boundary, the head of one part (8 KiB) or one field (1 KiB), and the piece itself.
///
/// Source: RFC 7578 and RFC 2046 section 5.1. Pure but for the sink.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold::batch {

/// The boundary in a Content-Type such as `multipart/form-data; boundary=abc`. Errors: BadRequest
/// for another type, or without a boundary of 1 to 70 characters.
Result<std::string> boundary_of(std::string_view content_type);

class UploadForm {
 public:
  using Sink = std::function<Result<void>(std::string_view bytes)>;

  /// `sink` gets the bytes of the part "file".
  UploadForm(const std::string& boundary, Sink sink)
      : delimiter_("\r\n--" + boundary), sink_(std::move(sink)) {}

  /// Errors: BadRequest for a malformed form, a field that is sent twice or is too long, and a
  /// second file; those of the sink. After an error the form must not be used.
  Result<void> add(std::string_view bytes);
  /// Call at the end of the body. Errors: BadRequest unless the last delimiter has arrived and the
  /// form had a file.
  Result<void> finish() const;

  const std::map<std::string, std::string>& fields() const { return fields_; }
  /// The name that the client gave the file; may be empty.
  const std::string& filename() const { return filename_; }

 private:
  enum class At { Preamble, AfterDelimiter, PartHead, File, Field, End };
  Result<bool> step();
  Result<bool> read_preamble();
  Result<bool> after_delimiter();
  Result<bool> read_head();
  Result<bool> read_content();
  Result<void> take(std::string_view content);

  std::string delimiter_;
  Sink sink_;
  At at_ = At::Preamble;
  std::string buffer_ = "\r\n";  // the first delimiter begins a line, too
  std::string field_;            // the name of the field that is being read
  std::map<std::string, std::string> fields_;
  std::string filename_;
  bool has_file_ = false;
};

}  // namespace leasehold::batch

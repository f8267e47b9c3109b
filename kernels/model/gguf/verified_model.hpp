/// The model file that weights are read from, always with the content that the worker started with.
///
///   the path has                  `find` returns
///   the file verified last        that file
///   another or a rewritten file   that file, if its digest is that of the content
///   no readable file              the open file, which stays readable when it was deleted
///
/// A file with other content is refused, and is not read again until it changes.
///
/// Lifetime: the opened file outlives it. Threads: one.
#pragma once

#include <optional>

#include "kernels/model/gguf/content_digest.hpp"
#include "kernels/model/gguf/gguf.hpp"

namespace leasehold {

class VerifiedModel {
 public:
  explicit VerifiedModel(const GgufFile& opened) : opened_(&opened), verified_(opened.identity()) {}

  /// Sets the digest of the opened file. Before this call, `find` accepts only the opened file.
  void pin(const ContentDigest& content) { content_ = content; }

  /// The file that `find` returned last, or the opened one.
  const GgufFile& file() const { return copy_ ? *copy_ : *opened_; }
  bool is_copy() const { return copy_.has_value(); }
  /// The identity of `file()` when its content was verified.
  const FileIdentity& identity() const { return verified_; }

  /// Checks the path again. A file there that is not the verified one is read as a whole and
  /// compared. Errors: MissingWeight for other content, saying what to do; those of GgufFile::open
  /// and of content_digest.
  Result<const GgufFile*> find();

  /// Confirms that bytes read from `file()` since `find` are of the verified content. Errors: as
  /// `find`.
  Result<void> confirm() const;

 private:
  Result<void> verify(const FileIdentity& now, bool is_at_path);
  Result<void> check_content(const GgufFile& file) const;

  const GgufFile* opened_;
  std::optional<GgufFile> copy_;  // replaces the opened file, once another is at its path
  FileIdentity verified_;         // identity of `file()`
  std::optional<ContentDigest> content_;
  struct Refused {
    FileIdentity file;
    Error why;
  };
  std::optional<Refused> refused_;  // the last file with other content
};

}  // namespace leasehold

/// The model file that weights are read from, always with the content that the worker started with.
///
///   at the path: the file verified last   → it
///                another, or rewritten    → it, if its digest is that of the content
///                nothing that can be read → the open file, readable also when it was deleted
///
/// Another content is refused without reading it again until the file changes.
///
/// Lifetime: the opened file outlives it. Threads: one.
#pragma once

#include <optional>

#include "worker/gguf/content_digest.hpp"
#include "worker/gguf/gguf.hpp"

namespace leasehold {

class VerifiedModel {
 public:
  explicit VerifiedModel(const GgufFile& opened) : opened_(&opened), verified_(opened.identity()) {}

  /// The digest of the opened file. Before this call `find` accepts no other file.
  void pin(const ContentDigest& content) { content_ = content; }

  /// The file that `find` returned last, or the opened one.
  const GgufFile& file() const { return copy_ ? *copy_ : *opened_; }
  bool is_copy() const { return copy_.has_value(); }
  /// Identifies that content in `file()`.
  const FileIdentity& identity() const { return verified_; }

  /// Looks at the path again, and reads a file that is not the verified one as a whole. Errors:
  /// MissingWeight for another content, saying what to do; those of GgufFile::open and of
  /// content_digest.
  Result<const GgufFile*> find();

  /// For bytes that were read from `file()` since `find`: they are of this content. Errors: as
  /// `find`.
  Result<void> confirm() const;

 private:
  Result<void> verify(const FileIdentity& now, bool is_at_path);
  Result<void> check_content(const GgufFile& file) const;

  const GgufFile* opened_;
  std::optional<GgufFile> copy_;  // of the opened file, once another file is at its path
  FileIdentity verified_;         // of `file()`
  std::optional<ContentDigest> content_;
  struct Refused {
    FileIdentity file;
    Error why;
  };
  std::optional<Refused> refused_;  // the last file of another content
};

}  // namespace leasehold

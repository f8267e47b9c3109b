#include "kernels/model/gguf/verified_model.hpp"

#include <fmt/format.h>

namespace leasehold {
namespace {

constexpr std::size_t kShownDigits = 12;

std::string shown(const ContentDigest& digest) {
  return digest.hex().substr(0, kShownDigits);
}

std::unexpected<Error> another_content(const std::string& path, const std::string& difference) {
  return fail(Errc::MissingWeight,
              fmt::format("{} is another model now ({}); put the file back, or start this worker "
                          "again",
                          path, difference));
}

}  // namespace

Result<const GgufFile*> VerifiedModel::find() {
  const Result<FileIdentity> at_path = file().identity_now();
  const FileIdentity now = at_path ? *at_path : TRY(file().opened_identity_now());
  if (now == verified_) return &file();
  if (refused_ && refused_->file == now) return std::unexpected(refused_->why);
  if (Result<void> verified = verify(now, at_path.has_value()); !verified) {
    if (verified.error().code == Errc::MissingWeight) refused_ = Refused{now, verified.error()};
    return std::unexpected(std::move(verified).error());
  }
  refused_.reset();
  return &file();
}

Result<void> VerifiedModel::verify(const FileIdentity& now, bool is_at_path) {
  if (now.size_bytes != verified_.size_bytes) {
    return another_content(file().path(),
                           fmt::format("{} bytes, was {}", now.size_bytes, verified_.size_bytes));
  }
  if (!is_at_path) {
    TRY(file().check_unchanged());  // before the whole file is read
    TRY(check_content(file()));
    verified_ = now;
    return {};
  }
  GgufFile another = TRY(GgufFile::open(file().path()));
  TRY(check_content(another));
  verified_ = another.identity();
  copy_.emplace(std::move(another));
  return {};
}

Result<void> VerifiedModel::check_content(const GgufFile& file) const {
  if (!content_) return another_content(file.path(), "it changed before its SHA-256 was known");
  const ContentDigest digest = TRY(content_digest(file));
  if (digest == *content_) return {};
  return another_content(file.path(),
                         fmt::format("SHA-256 {}, was {}", shown(digest), shown(*content_)));
}

/// Compares the content if the identity changed: a file that was deleted or renamed meanwhile has
/// another identity but the same bytes.
Result<void> VerifiedModel::confirm() const {
  if (!content_ || TRY(file().opened_identity_now()) == verified_) return {};
  return check_content(file());
}

}  // namespace leasehold

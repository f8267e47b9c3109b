#include "tools/cell/decide/membership.hpp"
#include "tools/cell/decide/record_text.hpp"

namespace leasehold::cell {
namespace {

/// The fields of the file, as texts and numbers.
struct SavedText {
  std::string boot_id;
  std::int64_t incarnation = 0;
  std::int64_t modified = 0;
  std::int64_t ceiling_boottime_ns = 0;
  struct Sent {
    BeatId beat;
    std::int64_t sent_boottime_ns = 0;
    std::int64_t ttl_ms = 0;
  };
  std::vector<Sent> sent;
  bool is_draining = false;
};

constexpr Between<std::int64_t> kTime{0, std::numeric_limits<std::int64_t>::max()};

void describe(Is<SavedText::Sent> auto& sent, auto& fields) {
  fields.field("beat", sent.beat);
  fields.field("sent_boottime_ns", sent.sent_boottime_ns, kTime);
  fields.field("ttl_ms", sent.ttl_ms, Between<std::int64_t>{0, CellConfig::kMaxTtlMs});
}

void describe(Is<SavedText> auto& saved, auto& fields) {
  fields.field("boot_id", saved.boot_id, TextRule::Name);
  fields.field("incarnation", saved.incarnation, kRevisions);
  fields.field("modified", saved.modified, kRevisions);
  fields.field("ceiling_boottime_ns", saved.ceiling_boottime_ns, kTime);
  fields.field("sent", saved.sent, MaxItems{Membership::kMaxSent});
  fields.with_default("draining", saved.is_draining, false);
}

}  // namespace

std::string text_of(const SavedMembership& saved, std::string_view boot_id) {
  SavedText text{.boot_id = std::string(boot_id),
                 .incarnation = saved.incarnation.value,
                 .modified = saved.modified.value,
                 .ceiling_boottime_ns = saved.ceiling.boottime_ns,
                 .sent = {},
                 .is_draining = saved.is_draining};
  for (const SentBeat& beat : saved.sent) {
    const auto ttl = std::chrono::duration_cast<std::chrono::milliseconds>(beat.ttl);
    text.sent.push_back({beat.beat, beat.sent.boottime_ns, ttl.count()});
  }
  return record_text(text);
}

Result<SavedMembership> read_saved_membership(std::string_view text, std::string_view boot_id) {
  const auto read = read_record<SavedText>("the saved membership", text);
  if (!read) {
    return fail(Errc::FileCorrupt,
                "the file of this host's membership is not readable; it is "
                "replaced, and the host joins again");
  }
  if (read->boot_id != boot_id) {
    return fail(Errc::StaleGeneration,
                "the saved membership is of an earlier boot of this machine; the host joins again");
  }
  SavedMembership saved{.incarnation = {read->incarnation},
                        .modified = {read->modified},
                        .ceiling = {read->ceiling_boottime_ns},
                        .sent = {},
                        .is_draining = read->is_draining};
  for (const SavedText::Sent& beat : read->sent)
    saved.sent.push_back(
        {beat.beat, {beat.sent_boottime_ns}, std::chrono::milliseconds(beat.ttl_ms)});
  return saved;
}

}  // namespace leasehold::cell

#include "broker/supervise/kept_slots.hpp"

namespace leasehold {

std::vector<KeptSlot> kept_slots(const LeaseTable& table) {
  std::vector<KeptSlot> slots;
  slots.reserve(table.slot_count());
  for (std::uint32_t slot = 0; slot < table.slot_count(); ++slot) {
    slots.push_back({.word = table.word(slot),
                     .deadline = table.deadline(slot),
                     .drain_deadline = table.drain_deadline(slot),
                     .word_stored_at = table.word_stored_at(slot)});
  }
  return slots;
}

}  // namespace leasehold

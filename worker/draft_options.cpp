#include "worker/draft_options.hpp"

#include "common/cli/number_option.hpp"
#include "kernels/model/architecture_keys.hpp"

namespace leasehold {

void add_draft_options(CLI::App& app, WorkerOptions& options) {
  app.add_option("--draft-model", options.draft_model_path,
                 "GGUF model that makes the proposals of --speculate: a smaller one with the same "
                 "vocabulary; on a CPU only");
  add_number_option(
      app, "--draft-context", options.draft_context,
      "Longest text that the draft model reads, in tokens; longer texts get no proposals; "
      "memory is reserved for this many tokens per sequence of --max-batch-size",
      2u, kMaxContext);
}

Result<void> check_draft(const WorkerOptions& options) {
  if (!options.draft_model_path.empty() && options.idle_sleep_after.count() > 0) {
    return fail(Errc::BadRequest,
                "--idle-sleep-after cannot be used with --draft-model, which does not return "
                "after a sleep; omit one of them");
  }
  if (options.draft_model_path.empty() || options.limits.speculate > 0) return {};
  return fail(Errc::BadRequest,
              "--draft-model proposes nothing with --speculate 0; add --speculate 4");
}

}  // namespace leasehold

#include "worker/batch_options.hpp"

#include "common/cli/command_line.hpp"
#include "common/cli/number_option.hpp"
#include "common/cli/size_option.hpp"

namespace leasehold {

void add_batch_options(CLI::App& app, WorkerOptions& options) {
  app.add_option("--batch-dir", options.batch_dir,
                 "Directory for files and batches of --http (OpenAI's Batch API), which run when "
                 "no other request wants the worker; without it there are none")
      ->check(check_directory_path);
  add_size_option(app, "--batch-quota", options.batch_limits.quota_bytes,
                  "Bytes of files, results included, that each tenant may keep in --batch-dir, for "
                  "example 256MiB",
                  {.low = 1ull << 20, .high = 1ull << 40})
      ->default_str("256MiB");
  add_number_option(app, "--batch-keep-hours", options.batch_keep_hours,
                    "Age at which files, and batches that have ended, are removed", 1u, 87'600u);
}

Result<void> resolve_batch_options(WorkerOptions& options) {
  if (!options.batch_dir.empty() && !options.http)
    return fail(Errc::BadRequest, "--batch-dir needs --http, whose clients send the batches");
  options.batch_limits.max_age_s = std::int64_t{options.batch_keep_hours} * 3'600;
  return {};
}

}  // namespace leasehold

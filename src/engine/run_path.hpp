#pragma once

#include <string>

namespace teller::engine {

/// What tells whether two spellings mean one file, folder or member of an archive ("run.tar!rank0.json"): absolute,
/// links followed, without ".", ".." and a "/" at the end. Of what does not exist, as far as it does.
std::string CanonicalPath(const std::string& path);

/// The path of a file of a run, `file` as in trace::File::path: relative where the run is a folder.
std::string PathInRun(const std::string& run, const std::string& file);

}  // namespace teller::engine

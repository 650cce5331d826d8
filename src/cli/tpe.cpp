#include "cli/tpe.hpp"

#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/byte_source.hpp"
#include "base/spool.hpp"
#include "cli/talk.hpp"
#include "cli/terminal.hpp"
#include "engine/sweep.hpp"
#include "engine/token_stats.hpp"
#include "engine/tokens.hpp"
#include "engine/training.hpp"
#include "report/diagnosis_json.hpp"
#include "report/token_stats.hpp"
#include "report/tokens_json.hpp"
#include "report/tokens_read.hpp"
#include "report/tokens_text.hpp"
#include "tpe/vocabulary_file.hpp"

namespace teller::cli {

namespace {

/// Read, a file takes a small multiple of its size.
constexpr uint64_t kMaxTokensBytes = uint64_t{128} << 20;
/// Of one file of tokens: a short file can ask for any number of them.
constexpr uint64_t kMaxDecodedNodes = uint64_t{1} << 26;
constexpr size_t kShownLost = 3;

/// One command of `teller tpe`.
class TpeSession {
 public:
  explicit TpeSession(const Command& command)
      : command_(command), common_(command.common), progress_(MakeProgress(common_.quiet)) {}

  int Execute() {
    if (!common_.logs.empty() && !std::holds_alternative<TpeEncodeOptions>(command_.what))
      return Fail("--logs is of no use here: tokens are made of traces");
    const base::Status done = std::visit([&](const auto& what) { return Run(what); }, command_.what);
    progress_.reset();
    if (!done.ok()) return Fail(done.error().Text());
    if (lost_.empty()) return kDone;
    if (!common_.quiet) Say("some input was lost or wrong in " + LostRuns() + "; teller inspect says what");
    return kLostInput;
  }

 private:
  report::TextOptions Text() const {
    const bool to_terminal = common_.output.empty() || common_.output == "-";
    return {.width = TerminalWidth(STDOUT_FILENO),
            .color = to_terminal && WantsColor(STDOUT_FILENO, common_.no_color),
            .all = common_.all};
  }

  static report::Sink Into(Output& output) {
    return [&output](std::string_view text) { return output.Write(text); };
  }

  /// The first few by name.
  std::string LostRuns() const {
    const size_t shown = std::min(lost_.size(), kShownLost);
    std::string out;
    for (size_t i = 0; i < shown; ++i) out += (i == 0 ? "" : ", ") + lost_[i];
    if (shown < lost_.size()) out += " and " + std::to_string(lost_.size() - shown) + " more";
    return out;
  }

  /// Writes a result of which nothing is left to go wrong.
  base::Status Write(const std::string& text) {
    progress_.reset();
    auto output = Output::Open(common_.output);
    if (!output) return output.error();
    TELLER_TRY(output->Write(text));
    return output->Close();
  }

  base::Result<engine::Structures> Read(const std::vector<std::string>& test = {}) {
    auto structures = engine::ReadStructures({.paths = common_.paths, .test = test, .graphs = common_.graphs},
                                             common_.threads, progress_.get());
    if (structures) lost_ = structures->lost;
    return structures;
  }

  template <class What>
  base::Status Run(const What&) {
    return base::Error{.code = base::Code::kUsage, .message = "no command of tpe"};
  }

  base::Status Run(const TpeTrainOptions& what) {
    if (common_.output.empty() || common_.output == "-")
      return base::Error{.code = base::Code::kUsage, .message = "name the file to write with -o FILE"};
    std::optional<tpe::Vocabulary> old;
    if (!what.extend.empty()) {
      auto read = tpe::ReadVocabulary(what.extend);
      if (!read) return read.error();
      old = std::move(*read);
    }
    const auto structures = Read();
    if (!structures) return structures.error();
    const auto training =
        engine::TrainVocabulary(*structures, what.merges, old ? &*old : nullptr, common_.threads, progress_.get());
    if (!training) return training.error();
    TELLER_TRY(tpe::WriteVocabulary(training->vocabulary, common_.output));
    progress_.reset();
    auto output = Output::Open("");
    TELLER_TRY(output->Write(report::TrainingToText(*training, common_.output, Text())));
    return {};
  }

  base::Status Run(const TpeEncodeOptions& what) {
    const auto vocabulary = engine::LoadVocabulary(what.vocabulary);
    if (!vocabulary) return vocabulary.error();
    const engine::Options options{.inputs = {.paths = common_.paths, .logs = common_.logs, .graphs = common_.graphs},
                                  .threads = common_.threads,
                                  .progress = progress_.get()};
    const auto run = engine::Open(options);
    if (!run) return run.error();
    if (run->store.diagnostics.LostInput()) lost_ = common_.paths;
    std::optional<trace::Diagnosis> diagnosis;
    if (what.findings) diagnosis = engine::Diagnose(*run, options);
    const trace::Diagnosis* found = diagnosis ? &*diagnosis : nullptr;
    const engine::TokenOptions wanted{.step = what.step, .rank = what.rank, .all = common_.all, .diagnosis = found};
    const report::TokensText text(*run, *vocabulary, found, Text());
    size_t shown = 0;  // evidence
    // Nothing is written before there is something to write.
    std::optional<Output> output;
    const auto sink = [&](const engine::EncodedSegment& segment) -> base::Status {
      const bool first = !output;
      shown += segment.evidence.size();
      if (first) {
        auto opened = Output::Open(common_.output);
        if (!opened) return opened.error();
        output.emplace(std::move(*opened));
        TELLER_TRY(output->Write(what.json ? report::TokensHead(*vocabulary, found) : text.Head()));
      }
      if (!what.json) return text.WriteSegment(segment, what.step.has_value(), Into(*output));
      TELLER_TRY(output->Write(first ? "" : ",\n"));
      return report::WriteTokensSegment(*run, segment, found, Into(*output));
    };
    TELLER_TRY(engine::EncodeRun(*run, *vocabulary, wanted,
                                 what.json || !common_.output.empty() ? progress_.get() : nullptr, sink));
    if (what.json) TELLER_TRY(output->Write(report::TokensTail()));
    if (!what.json && found != nullptr) TELLER_TRY(output->Write(text.Tail(shown)));
    return output->Close();
  }

  static base::Result<std::string> ReadAll(const std::string& path) {
    std::optional<base::Spool> spool;
    std::string from = path;
    if (path == "-") {
      auto kept = base::Spool::OfDescriptor(STDIN_FILENO);
      if (!kept) return kept.error();
      spool.emplace(std::move(*kept));
      from = spool->path();
    }
    auto source = base::OpenFile(from);
    if (!source) return source.error();
    std::string text;
    std::string buffer(size_t{1} << 20, '\0');
    while (true) {
      const auto n = source.value()->Read(buffer.data(), buffer.size());
      if (!n) return n.error();
      if (*n == 0) break;
      text.append(buffer, 0, *n);
      if (text.size() > kMaxTokensBytes)
        return base::Error{
            .code = base::Code::kLimit, .message = "more than 128 MiB of tokens; encode fewer steps", .path = path};
    }
    if (!source.value()->damage().empty())
      return base::Error{
          .code = base::Code::kBadFormat, .message = std::string(source.value()->damage()), .path = path};
    return text;
  }

  /// The file's text is gone when this returns.
  static base::Result<report::ReadTokens> ReadTokens(const std::string& path) {
    const auto text = ReadAll(path);
    if (!text) return text.error();
    return report::TokensFromJson(*text, path);
  }

  base::Status Run(const TpeDecodeOptions& what) {
    if (common_.paths.size() != 1) return base::Error{.code = base::Code::kUsage, .message = "decode reads one file"};
    const std::string& path = common_.paths.front();
    const auto vocabulary = engine::LoadVocabulary(what.vocabulary);
    if (!vocabulary) return vocabulary.error();
    const auto tokens = ReadTokens(path);
    if (!tokens) return tokens.error();
    if (tokens->fingerprint != vocabulary->fingerprint) {
      return base::Error{.code = base::Code::kBadFormat,
                         .message = "these tokens are of vocabulary \"" + tokens->vocabulary + "\" (" +
                                    report::HexText(tokens->fingerprint) + "), not of \"" + vocabulary->name + "\" (" +
                                    report::HexText(vocabulary->fingerprint) + "); name theirs with --vocab",
                         .path = path};
    }
    // All is decoded before anything is written.
    std::vector<tpe::Forest> forests;
    uint64_t room = kMaxDecodedNodes;
    for (size_t s = 0; s < tokens->segments.size(); ++s) {
      auto forest = report::DecodeSegment(vocabulary->vocabulary, tokens->segments[s], room);
      if (!forest) {
        base::Error error = forest.error();
        if (error.code == base::Code::kLimit)
          error.message =
              "tokens stand for more than " + std::to_string(kMaxDecodedNodes) + " nodes in all; decode fewer";
        error.path = path;
        error.at = "segment " + std::to_string(s) + (error.at.empty() ? "" : ", " + error.at);
        return error;
      }
      room -= forest->symbols.size();
      forests.push_back(std::move(*forest));
    }
    auto output = Output::Open(common_.output);
    if (!output) return output.error();
    if (what.json) TELLER_TRY(output->Write("{\"schema\":\"teller.forest/1\",\"segments\":[\n"));
    for (size_t s = 0; s < forests.size(); ++s) {
      const report::ReadSegment& segment = tokens->segments[s];
      if (what.json) {
        TELLER_TRY(output->Write(s == 0 ? "" : ",\n"));
        TELLER_TRY(report::WriteForestJson(vocabulary->vocabulary, segment, forests[s], Into(*output)));
      } else {
        TELLER_TRY(report::WriteForestText(vocabulary->vocabulary, segment, forests[s], Text(), Into(*output)));
      }
    }
    if (what.json) TELLER_TRY(output->Write("\n]}\n"));
    return output->Close();
  }

  base::Status Run(const TpeStatsOptions& what) {
    const auto vocabulary = engine::LoadVocabulary(what.vocabulary);
    if (!vocabulary) return vocabulary.error();
    const auto structures = Read();
    if (!structures) return structures.error();
    const auto stats = engine::MeasureTokens(*structures, vocabulary->vocabulary, common_.threads, progress_.get());
    if (!stats) return stats.error();
    return Write(what.json ? report::JsonText(report::TokenStatsToJson(*structures, *vocabulary, *stats, common_.all))
                           : report::TokenStatsToText(*structures, *vocabulary, *stats, Text()));
  }

  base::Status Run(const TpeDumpOptions& what) {
    const auto vocabulary = engine::LoadVocabulary(what.vocabulary);
    if (!vocabulary) return vocabulary.error();
    return Write(tpe::VocabularyJson(vocabulary->vocabulary));
  }

  base::Status Run(const TpeSweepOptions& what) {
    const auto structures = Read(what.test);
    if (!structures) return structures.error();
    const engine::SweepOptions options{.merges = what.merges, .threads = common_.threads, .progress = progress_.get()};
    const auto sweep = engine::RunSweep(*structures, what.test, options);
    if (!sweep) return sweep.error();
    return Write(what.json ? report::JsonText(report::SweepToJson(*sweep)) : report::SweepToText(*sweep, Text()));
  }

  const Command& command_;
  const CommonOptions& common_;
  std::unique_ptr<base::Progress> progress_;
  std::vector<std::string> lost_;  // runs of which something was lost
};

}  // namespace

bool IsTpe(const Command& command) {
  return std::visit(
      [](const auto& what) {
        using What = std::decay_t<decltype(what)>;
        return std::is_same_v<What, TpeTrainOptions> || std::is_same_v<What, TpeEncodeOptions> ||
               std::is_same_v<What, TpeDecodeOptions> || std::is_same_v<What, TpeStatsOptions> ||
               std::is_same_v<What, TpeDumpOptions> || std::is_same_v<What, TpeSweepOptions>;
      },
      command.what);
}

int RunTpe(const Command& command) {
  return TpeSession(command).Execute();
}

}  // namespace teller::cli

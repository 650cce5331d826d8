#include <zstd.h>
#include <zstd_errors.h>

#include <vector>

#include "base/decompress.hpp"

namespace teller::base {

namespace {

class ZstdSource : public ByteSource {
 public:
  explicit ZstdSource(std::unique_ptr<ByteSource> raw)
      : raw_(std::move(raw)), input_(ZSTD_DStreamInSize()), stream_(ZSTD_createDStream()) {
    TELLER_CHECK(stream_ != nullptr);
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, kMaxZstdWindowLog);
  }
  ZstdSource(const ZstdSource&) = delete;
  ZstdSource& operator=(const ZstdSource&) = delete;
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }

  Result<size_t> Read(char* into, size_t n) override {
    ZSTD_outBuffer out{into, n, 0};
    while (out.pos < n && !done_) {
      if (in_.pos == in_.size && !held_back_) {
        auto more = raw_->Read(input_.data(), input_.size());
        if (!more) return more.error();
        if (*more == 0) {
          End(in_frame_ ? "zstd data ends in the middle of a frame" : "");
          break;
        }
        in_ = {input_.data(), *more, 0};
      }
      Step(out);
    }
    return out.pos;
  }
  std::string_view damage() const override { return damage_; }
  uint64_t consumed() const override { return raw_->consumed(); }

 private:
  void Step(ZSTD_outBuffer& out) {
    const size_t made = out.pos;
    const size_t left = ZSTD_decompressStream(stream_, &out, &in_);
    if (ZSTD_isError(left) != 0) {
      const ZSTD_ErrorCode code = ZSTD_getErrorCode(left);
      if (code == ZSTD_error_frameParameter_windowTooLarge) {
        End("zstd data needs a window above 128 MiB; compress it again without --long");
      } else {
        // Bytes after a whole frame that begin no frame are padding in practice; anything else is damage.
        const bool padding = frames_ > 0 && !in_frame_ && out.pos == made;
        End(padding ? "bytes after the last zstd frame were ignored" : "zstd data is damaged");
      }
      return;
    }
    in_frame_ = left != 0;
    frames_ += left == 0;
    held_back_ =
        in_frame_ && out.pos == out.size && in_.pos == in_.size;  // it may have more to give without more input
  }

  void End(std::string_view damage) {
    done_ = true;
    damage_ = damage;
  }

  std::unique_ptr<ByteSource> raw_;
  std::vector<char> input_;
  ZSTD_DStream* stream_;
  ZSTD_inBuffer in_ = {nullptr, 0, 0};
  bool in_frame_ = false;
  bool held_back_ = false;
  bool done_ = false;
  uint64_t frames_ = 0;
  std::string_view damage_;
};

}  // namespace

std::unique_ptr<ByteSource> Unzstd(std::unique_ptr<ByteSource> raw) {
  return std::make_unique<ZstdSource>(std::move(raw));
}

}  // namespace teller::base

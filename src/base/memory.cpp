#include "base/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

namespace teller::base {

namespace {

constexpr size_t kHugePage = 2u << 20;
constexpr size_t kChunk = 2 * kHugePage;  // a few windows' worth of parsed columns; small enough to be freed soon

size_t RoundUp(size_t n, size_t to) {
  return (n + to - 1) / to * to;
}

}  // namespace

PageBuffer::PageBuffer(size_t bytes) {
  const size_t unit = bytes >= kHugePage ? kHugePage : 4096;
  size_ = RoundUp(std::max<size_t>(bytes, 1), unit);
  // mmap aligns to small pages only: take one huge page more and give back what sticks out.
  const size_t slack = unit == kHugePage ? kHugePage : 0;
  void* raw = ::mmap(nullptr, size_ + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) {
    size_ = 0;
    throw std::bad_alloc();
  }
  data_ = static_cast<char*>(raw);
  if (slack > 0) {
    const size_t head = RoundUp(reinterpret_cast<uintptr_t>(raw), kHugePage) - reinterpret_cast<uintptr_t>(raw);
    if (head > 0) ::munmap(raw, head);
    data_ += head;
    if (slack > head) ::munmap(data_ + size_, slack - head);
    ::madvise(data_, size_, MADV_HUGEPAGE);
  }
}

PageBuffer::~PageBuffer() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void PageBuffer::Grow(size_t bytes, size_t keep) {
  if (bytes <= size_) return;
  PageBuffer larger(std::max(bytes, size_ * 2));
  if (keep > 0) std::memcpy(larger.data_, data_, keep);
  *this = std::move(larger);
}

void AdviseHugePages(void* data, size_t bytes) {
  const size_t begin = RoundUp(reinterpret_cast<uintptr_t>(data), kHugePage);
  const size_t end = (reinterpret_cast<uintptr_t>(data) + bytes) / kHugePage * kHugePage;
  if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

std::shared_ptr<char> ChunkArena::Allocate(size_t bytes) {
  const size_t need = RoundUp(std::max<size_t>(bytes, 1), 64);
  if (!chunk_ || used_ + need > chunk_->size()) {
    chunk_ = std::make_shared<PageBuffer>(std::max(need, kChunk));
    used_ = 0;
  }
  char* at = chunk_->data() + used_;
  used_ += need;
  return {chunk_, at};
}

}  // namespace teller::base

package image

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/containerd/containerd/v2/pkg/archive/compression"
	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the memory that decompression needs. The levels of zstd that image tools use need 8 MiB at most.
const maxWindow = 32 << 20

// longestMagic is how many bytes identify a compression.
const longestMagic = 10

// decompress returns the decompressed stream of a layer or an archive, with bounded memory. A stream that is not compressed is returned as
// it is.
func decompress(r io.Reader) (io.ReadCloser, error) {
	buf := bufio.NewReaderSize(r, 32<<10)
	start, err := buf.Peek(longestMagic)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if compression.DetectCompression(start) != compression.Zstd {
		return compression.DecompressStream(buf)
	}
	z, err := zstd.NewReader(buf, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	return &zstdStream{z}, nil
}

type zstdStream struct{ z *zstd.Decoder }

func (s *zstdStream) Read(p []byte) (int, error) {
	n, err := s.z.Read(p)
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		err = exceeds("zstd window is larger than %d bytes", maxWindow)
	} else if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("decompress: %w", err)
	}
	return n, err
}

func (s *zstdStream) Close() error {
	s.z.Close()
	return nil
}

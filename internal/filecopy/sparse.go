package filecopy

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// tarBlock is the unit of a tar stream.
	tarBlock = 512
	// sparseKey begins the keys of a sparse file in a PAX header. Package tar reads them, but does not write them: a header is written with
	// keys of the same length, which are replaced.
	sparseKey, placeholderKey = "GNU.sparse.", "GNU_sparse."
)

// maxExtents is the maximum number of parts with data of a sparse file. Readers limit the size of their list. Only tests change it.
var maxExtents = 10_000

// extent is a part of a file that has data.
type extent struct{ offset, length int64 }

// extents returns the parts of a file that have data; nil: the file has no holes, or its file system does not tell.
func extents(f *os.File, st *unix.Stat_t) []extent {
	const sector = 512 // of st_blocks
	if st.Blocks*sector >= st.Size {
		return nil
	}
	list := []extent{} // not nil: a file without data is one hole
	for at := int64(0); at < st.Size; {
		start, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // no data up to the end
			break
		}
		if err != nil {
			return nil
		}
		end, err := unix.Seek(int(f.Fd()), start, unix.SEEK_HOLE)
		if err != nil {
			return nil
		}
		end = min(end, st.Size)
		if start >= end || len(list) == maxExtents {
			break
		}
		list = append(list, extent{start, end - start})
		at = end
	}
	if n := len(list); n == maxExtents { // the holes after this many are written as zeros
		list[n-1].length = st.Size - list[n-1].offset
	}
	if len(list) == 1 && list[0].length == st.Size { // in the inode, or compressed
		return nil
	}
	if n := len(list); n == 0 || list[n-1].offset+list[n-1].length < st.Size {
		list = append(list, extent{st.Size, 0}) // tar(1) needs it for a hole at the end
	}
	return list
}

// sparse writes a regular file without its holes, in the format 1.0 for sparse files of GNU tar.
func (p *Packer) sparse(header *tar.Header, data *os.File, list []extent) error {
	var index bytes.Buffer
	size := int64(0)
	fmt.Fprintf(&index, "%d\n", len(list))
	for _, e := range list {
		fmt.Fprintf(&index, "%d\n%d\n", e.offset, e.length)
		size += e.length
	}
	index.Write(make([]byte, -index.Len()&(tarBlock-1)))
	h := *header
	h.Name = path.Join(path.Dir(header.Name), "GNUSparseFile.0", path.Base(header.Name)) // for readers that do not know the format
	h.Size = int64(index.Len()) + size
	h.PAXRecords = map[string]string{
		placeholderKey + "major": "1", placeholderKey + "minor": "0", placeholderKey + "name": header.Name,
		placeholderKey + "realsize": strconv.FormatInt(header.Size, 10),
	}
	maps.Copy(h.PAXRecords, header.PAXRecords)
	var b bytes.Buffer
	if err := errors.Join(tar.NewWriter(&b).WriteHeader(&h), replaceKeys(b.Bytes()), p.Stream.Flush()); err != nil {
		return err
	}
	if _, err := p.Out.Write(append(b.Bytes(), index.Bytes()...)); err != nil {
		return err
	}
	for _, e := range list {
		part := stopper{p.ctx, io.NewSectionReader(data, e.offset, e.length)}
		if err := p.exactly(p.Out, part, header.Name, e.length); err != nil {
			return err
		}
	}
	_, err := p.Out.Write(make([]byte, -size&(tarBlock-1)))
	return err
}

// replaceKeys replaces the keys of a sparse file in an extended header, whose records are "LENGTH KEY=VALUE\n".
func replaceKeys(header []byte) error {
	const typeAt, sizeAt, sizeEnd = 156, 124, 136
	if len(header) < 2*tarBlock || header[typeAt] != 'x' {
		return errors.New("write archive: no extended header")
	}
	size, err := strconv.ParseInt(strings.TrimRight(string(header[sizeAt:sizeEnd]), "\x00 "), 8, 64)
	if err != nil || size > int64(len(header)-tarBlock) {
		return fmt.Errorf("write archive: size of the extended header: %w", err)
	}
	for records := header[tarBlock : tarBlock+size]; len(records) > 0; {
		length, rest, found := bytes.Cut(records, []byte(" "))
		n, err := strconv.Atoi(string(length))
		if !found || err != nil || n <= len(length) || n > len(records) {
			return errors.New("write archive: invalid extended header")
		}
		if bytes.HasPrefix(rest, []byte(placeholderKey)) {
			copy(rest, sparseKey)
		}
		records = records[n:]
	}
	return nil
}

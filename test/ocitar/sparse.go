package ocitar

import (
	"archive/tar"
	"bytes"
	"fmt"
	"strings"
)

// PAXHole returns the headers of a file that has only a hole, in the format of GNU tar 1.15 (GNU.sparse 0.1). archive/tar does not write
// it. The last header is all that a reader needs to write the file.
func PAXHole(name string, size int64) []byte {
	records := paxRecord("GNU.sparse.major", "0") + paxRecord("GNU.sparse.minor", "1") + paxRecord("GNU.sparse.name", name) +
		paxRecord("GNU.sparse.size", fmt.Sprint(size)) + paxRecord("GNU.sparse.numblocks", "1") +
		paxRecord("GNU.sparse.map", fmt.Sprintf("%d,0", size))
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, file := range []struct{ name, data string }{{"PaxHeaders/" + name, records}, {name, ""}} {
		h := &tar.Header{Name: file.name, Size: int64(len(file.data)), Mode: 0o644, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			panic(err)
		}
		if _, err := w.Write([]byte(file.data)); err != nil {
			panic(err)
		}
	}
	if err := w.Flush(); err != nil {
		panic(err)
	}
	return retyped(buf.Bytes(), tar.TypeXHeader)
}

// paxRecord returns a record: its length, which counts itself, the key and the value.
func paxRecord(key, value string) string {
	rest := " " + key + "=" + value + "\n"
	length := len(rest)
	for length != len(rest)+len(fmt.Sprint(length)) {
		length = len(rest) + len(fmt.Sprint(length))
	}
	return fmt.Sprint(length) + rest
}

// retyped changes the type in the first header.
func retyped(data []byte, to byte) []byte {
	const checksum, typeFlag, header = 148, 156, 512
	data[typeFlag] = to
	copy(data[checksum:], strings.Repeat(" ", 8))
	sum := 0
	for _, b := range data[:header] {
		sum += int(b)
	}
	copy(data[checksum:], fmt.Sprintf("%06o\x00", sum))
	return data
}

package statefile

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

// sumName is the last member of a file: the checksum of all bytes before it.
//
// Versions before the checksum take it for a field that a later version added, and write it back beside fields that have changed. They
// sort the members when they do. The name sorts before all others, so that it is never the last one then, unless it is the only one behind
// the version. A checksum in another place, and that of a file without other members, is ignored.
const sumName = "_sum"

const (
	sumStart = `,"` + sumName + `":"`
	sumEnd   = `"}`
	sumSize  = len(sumStart) + 8 + len(sumEnd)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errSum = errors.New("the checksum is wrong: the file is damaged")

// addSum adds the checksum to an object.
func addSum(object []byte) []byte {
	body := object[:len(object)-1]
	return fmt.Appendf(body, "%s%08x%s", sumStart, crc32.Checksum(body, castagnoli), sumEnd)
}

// checkSum returns an error if the checksum of a file is wrong. It succeeds if the file has none.
func checkSum(file []byte) error {
	file = bytes.TrimRight(file, "\n")
	n := len(file) - sumSize
	if n < 0 || !bytes.HasPrefix(file[n:], []byte(sumStart)) || bytes.IndexByte(file[:n], ',') < 0 {
		return nil
	}
	if want := addSum(append(bytes.Clone(file[:n]), '}')); !bytes.Equal(file, want) {
		return errSum
	}
	return nil
}

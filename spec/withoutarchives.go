package spec

import (
	"bytes"
	"fmt"
)

// WithoutArchives returns the text of a pod file with an empty imageArchives, for a host that has the images under their names. The rest of
// the text, with its comments, is as it was. The pod must be valid.
func WithoutArchives(file string, data []byte) ([]byte, error) {
	var archives []*node
	pod, problems := parse(file, data, Options{archives: &archives})
	if pod == nil {
		return nil, problems
	}
	if len(archives) == 0 {
		return data, nil
	}
	list, last := archives[0].parent, archives[len(archives)-1]
	starts := lineStarts(data)
	begin, ok := arrayStart(data, offsetOf(starts, list.keyAt))
	end, closed := arrayEnd(data, offsetOf(starts, last.at)+last.size)
	if ok && closed && begin < end {
		text := bytes.Join([][]byte{data[:begin], []byte("[]"), data[end:]}, nil)
		if again, _ := parse(file, text, Options{}); again != nil && len(again.ImageArchives) == 0 && again.Name == pod.Name {
			return text, nil
		}
	}
	return nil, fmt.Errorf("%s: imageArchives cannot be removed, write it as imageArchives = [...] on lines of its own", file)
}

// arrayStart returns the offset of the bracket that opens the value of a key. Neither the key nor what follows it on the line has a
// comment.
func arrayStart(data []byte, key int) (int, bool) {
	if key > len(data) {
		return 0, false
	}
	line, _, _ := bytes.Cut(data[key:], []byte("\n"))
	equals := bytes.IndexByte(line, '=')
	if equals < 0 {
		return 0, false
	}
	bracket := bytes.IndexByte(line[equals:], '[')
	return key + equals + bracket, bracket > 0
}

// arrayEnd returns the offset behind the bracket that closes an array, from the end of its last value.
func arrayEnd(data []byte, offset int) (int, bool) {
	for i := offset; i < len(data); i++ {
		switch data[i] {
		case ']':
			return i + 1, true
		case '#':
			for i+1 < len(data) && data[i+1] != '\n' {
				i++
			}
		case ' ', '\t', '\r', '\n', ',':
		default:
			return 0, false
		}
	}
	return 0, false
}

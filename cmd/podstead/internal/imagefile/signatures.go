package imagefile

import (
	"fmt"

	"github.com/podstead/podstead/runtime/image/signature"
)

// maxSignatures is the maximum size of all signatures in a request.
const maxSignatures = 512 << 10

// Signatures returns the signatures in the files beside an archive or a directory, as a request to import it has them.
func Signatures(path string) ([]string, error) {
	list, err := signature.Beside(path)
	if err != nil {
		return nil, err
	}
	var texts []string
	size := 0
	for i := range list {
		text, err := list[i].Encode()
		if err != nil {
			return nil, err
		}
		if size += len(text); size > maxSignatures {
			return nil, fmt.Errorf("the signatures beside it have more than %d bytes", maxSignatures)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

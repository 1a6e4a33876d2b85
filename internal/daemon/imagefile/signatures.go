package imagefile

import (
	"fmt"
	"slices"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/image/signature"
)

// maxImages is the maximum number of images in a request to export them.
const maxImages = 256

// Signatures returns the signatures in the files beside an archive or a directory, as a request to import it has them.
func Signatures(path string) ([]string, error) {
	list, err := signature.Beside(path)
	if err != nil {
		return nil, err
	}
	var texts []string
	for i := range list {
		text, err := list[i].Encode()
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, CheckSize(texts)
}

// CheckSize checks that a request can have the signatures of an image.
func CheckSize(signatures []string) error {
	if !fits(signatures) {
		return fmt.Errorf("has more than %d bytes of signatures", api.MaxSignatures)
	}
	return nil
}

func fits(signatures []string) bool { return len(api.JoinSignatures(signatures)) <= api.MaxSignatures }

// Group is an archive of several images with their signatures, which a single request imports.
type Group struct {
	Images     []string
	Signatures []string
}

// Groups divides images into as few archives as the limits of a request allow: images in one archive share layers.
type Groups []Group

// Add adds an image with its signatures, which [CheckSize] accepts.
func (g *Groups) Add(name string, signatures []string) {
	if n := len(*g); n > 0 {
		last := &(*g)[n-1]
		all := slices.Concat(last.Signatures, signatures)
		if len(last.Images) < maxImages && (len(signatures) == 0 || len(all) <= signature.MaxSignatures && fits(all)) {
			last.Images, last.Signatures = append(last.Images, name), all
			return
		}
	}
	*g = append(*g, Group{[]string{name}, signatures})
}

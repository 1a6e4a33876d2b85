package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/distribution/reference"

	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/runtime/image/signature"
	"github.com/podstead/podstead/spec"
)

// VerifyRule is an element of images.verify: what is required of the images with a prefix. It can be set in the file only.
type VerifyRule struct {
	Prefix string   `json:"prefix"`         // a registry, or the start of a repository
	Type   string   `json:"type,omitempty"` // a [signature.Type]; empty: signed
	Keys   []string `json:"keys,omitempty"` // files with public keys
}

// kind is the type of a rule.
func (r *VerifyRule) kind() signature.Type {
	if r.Type == "" {
		return signature.Signed
	}
	return signature.Type(r.Type)
}

const verifyHint = `write a rule as [[images.verify]] with prefix = "registry.example.com/shop" and keys = ["/etc/podstead/keys/shop.pub"]`

// checkVerify checks the rules of a file, but not their keys.
func (c *Config) checkVerify(file *spec.Decoded) {
	seen := map[string]bool{}
	for i := range c.Images.Verify {
		r := &c.Images.Verify[i]
		bad := func(field any, format string, args ...any) {
			if !file.Has(field) {
				field = r
			}
			file.Bad(field, fmt.Sprintf(format, args...), "")
		}
		switch err := checkPrefix(r.Prefix); {
		case r.Prefix == "":
			file.Bad(r, "prefix: Required value", verifyHint)
		case err != nil:
			bad(&r.Prefix, "%v", err)
		case seen[r.Prefix]:
			bad(&r.Prefix, "%q: another rule has this prefix", r.Prefix)
		}
		seen[r.Prefix] = true
		switch r.kind() {
		case signature.Signed:
			if len(r.Keys) == 0 {
				file.Bad(r, "keys: Required value for the type signed", verifyHint)
			}
		case signature.Accept, signature.Reject:
			if len(r.Keys) > 0 {
				bad(&r.Keys, "must be empty for the type %s", r.Type)
			}
		default:
			bad(&r.Type, "must be one of %s, %s, %s", signature.Signed, signature.Accept, signature.Reject)
		}
		for k := range r.Keys {
			if !filepath.IsAbs(r.Keys[k]) {
				bad(&r.Keys[k], "%q: must be an absolute path", r.Keys[k])
			}
		}
	}
	c.verify = file
}

// checkPrefix checks the prefix of a repository. It must start with a registry: a name without one is short for a name on Docker Hub.
func checkPrefix(prefix string) error {
	domain, path, _ := strings.Cut(prefix, "/")
	if domain != "localhost" && !strings.ContainsAny(domain, ".:") {
		return fmt.Errorf("%q: must start with a registry, such as docker.io/library", prefix)
	}
	if path == "" {
		path = "x"
	}
	named, err := reference.ParseNormalizedNamed(domain + "/" + path)
	if err != nil || named.Name() != named.String() || strings.HasSuffix(prefix, "/") {
		return fmt.Errorf("%q: must be a registry or the start of a repository, without a tag, a digest and a slash at the end", prefix)
	}
	return nil
}

// Verification returns the policy for signatures with the keys, which it reads. A key that cannot be read is one of the [spec.Problems].
func (c *Config) Verification() (*signature.Policy, error) {
	p := &signature.Policy{Default: signature.Type(c.Images.VerifyDefault)}
	for i := range c.Images.Verify {
		r := &c.Images.Verify[i]
		rule := signature.Rule{Prefix: r.Prefix, Type: r.kind()}
		for k := range r.Keys {
			key, err := signature.LoadKey(r.Keys[k])
			if err != nil {
				c.verify.Bad(&r.Keys[k], fmt.Sprintf("%q: %v", r.Keys[k], plain.WithoutPath(err)), "")
				continue
			}
			rule.Keys = append(rule.Keys, key)
		}
		p.Rules = append(p.Rules, rule)
	}
	if c.verify != nil {
		if problems := c.verify.Problems(); len(problems) > 0 {
			return nil, problems
		}
	}
	return p, nil
}

// verifyTypes are the values of images.verifyDefault. Without a rule there is no key.
func verifyTypes() []string {
	return []string{string(signature.Accept), string(signature.Reject)}
}

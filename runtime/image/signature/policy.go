// Package signature decides which images must be signed by a key, and verifies signatures of images: cosign's simple signing and sigstore
// bundles. It owns no state and makes no request: its callers fetch the signatures, see package image.
//
// Only public keys are supported. Certificates of Fulcio (keyless signatures), transparency logs and timestamps are not: a signature counts
// if a key of the policy has made it, whatever else accompanies it.
package signature

import (
	"fmt"
	"slices"
	"strings"
)

// Type is what a policy does with the images of a prefix.
type Type string

// The types.
const (
	Accept Type = "accept" // whether they are signed or not
	Reject Type = "reject"
	Signed Type = "signed" // accept what a key has signed
)

// Rule is the policy for the repositories with a prefix.
type Rule struct {
	// Prefix is a registry, or the start of a repository on the border of a path component, such as registry.example.com/shop; empty: the
	// default of the policy.
	Prefix string
	Type   Type
	// Keys are those of which one must have signed. Only [Signed] has keys.
	Keys []Key
}

// Policy is the policy for all images. A nil policy accepts all.
type Policy struct {
	Rules []Rule
	// Default is the type for repositories without a rule: [Accept] or [Reject].
	Default Type
}

// For returns the rule of a repository such as docker.io/library/nginx: that with the longest prefix.
func (p *Policy) For(repository string) Rule {
	found := Rule{Type: Accept}
	if p == nil {
		return found
	}
	if p.Default != "" {
		found.Type = p.Default
	}
	for _, r := range p.Rules {
		if within(repository, r.Prefix) && len(r.Prefix) > len(found.Prefix) {
			found = r
		}
	}
	return found
}

// within reports whether a repository has a prefix on the border of a path component.
func within(repository, prefix string) bool {
	rest, ok := strings.CutPrefix(repository, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// String describes the rule for a person.
func (r *Rule) String() string {
	if r.Prefix == "" {
		return "images.verifyDefault"
	}
	return fmt.Sprintf("images.verify prefix %q", r.Prefix)
}

// keyNames lists the keys of a rule.
func (r *Rule) keyNames() string {
	names := make([]string, len(r.Keys))
	for i := range r.Keys {
		names[i] = r.Keys[i].Name
	}
	return strings.Join(names, " or ")
}

// EqualRules reports whether two policies have the same rules with the same keys.
func (p *Policy) EqualRules(other *Policy) bool {
	return slices.EqualFunc(p.Rules, other.Rules, func(a, b Rule) bool {
		return a.Prefix == b.Prefix && a.Type == b.Type && slices.EqualFunc(a.Keys, b.Keys, func(a, b Key) bool { return a.ID == b.ID })
	})
}

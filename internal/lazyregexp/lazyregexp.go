// Package lazyregexp compiles regular expressions when they are used. A command uses few of those of the program, and compiling all of them
// at its start took a megabyte.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression that its first use compiles. Its methods are those of [regexp.Regexp] with the same name. It is safe for
// concurrent use.
type Regexp struct{ compiled func() *regexp.Regexp }

// New returns a regular expression. It must be valid, which a test checks (TestRegexps of test/repo).
func New(text string) *Regexp {
	return &Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
}

// Match is as in [regexp.Regexp].
func (r *Regexp) Match(b []byte) bool { return r.compiled().Match(b) }

// MatchString is as in [regexp.Regexp].
func (r *Regexp) MatchString(s string) bool { return r.compiled().MatchString(s) }

// Find is as in [regexp.Regexp].
func (r *Regexp) Find(b []byte) []byte { return r.compiled().Find(b) }

// FindSubmatch is as in [regexp.Regexp].
func (r *Regexp) FindSubmatch(b []byte) [][]byte { return r.compiled().FindSubmatch(b) }

// FindString is as in [regexp.Regexp].
func (r *Regexp) FindString(s string) string { return r.compiled().FindString(s) }

// FindAllString is as in [regexp.Regexp].
func (r *Regexp) FindAllString(s string, n int) []string { return r.compiled().FindAllString(s, n) }

// FindStringSubmatch is as in [regexp.Regexp].
func (r *Regexp) FindStringSubmatch(s string) []string { return r.compiled().FindStringSubmatch(s) }

// FindAllStringSubmatch is as in [regexp.Regexp].
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.compiled().FindAllStringSubmatch(s, n)
}

// ReplaceAll is as in [regexp.Regexp].
func (r *Regexp) ReplaceAll(src, replacement []byte) []byte {
	return r.compiled().ReplaceAll(src, replacement)
}

// ReplaceAllFunc is as in [regexp.Regexp].
func (r *Regexp) ReplaceAllFunc(src []byte, replacement func([]byte) []byte) []byte {
	return r.compiled().ReplaceAllFunc(src, replacement)
}

// ReplaceAllString is as in [regexp.Regexp].
func (r *Regexp) ReplaceAllString(src, replacement string) string {
	return r.compiled().ReplaceAllString(src, replacement)
}

// ReplaceAllStringFunc is as in [regexp.Regexp].
func (r *Regexp) ReplaceAllStringFunc(src string, replacement func(string) string) string {
	return r.compiled().ReplaceAllStringFunc(src, replacement)
}

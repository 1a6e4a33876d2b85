package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// safeVersions are the lowest versions of OCI runtimes without a known escape from a container, by series. docs/security.md lists the
// vulnerabilities.
var safeVersions = map[string][]string{
	"runc": {"1.2.8", "1.3.3", "1.4.0-rc.3"},
	"crun": {"1.20"},
}

// runtimeVersion matches the first line of runc --version and crun --version.
var runtimeVersion = regexp.MustCompile(`^(runc|crun) version (\d+)\.(\d+)(?:\.(\d+))?(?:-rc\.?(\d+))?`)

// version is a version of an OCI runtime. A release has a high release candidate.
type version struct{ major, minor, patch, candidate int }

func parseVersion(match []string) version {
	number := func(text string, missing int) int {
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
		return missing
	}
	return version{number(match[2], 0), number(match[3], 0), number(match[4], 0), number(match[5], 1<<30)}
}

func (v version) compare(w version) int {
	return slices.Compare([]int{v.major, v.minor, v.patch, v.candidate}, []int{w.major, w.minor, w.patch, w.candidate})
}

// escapes returns a warning if the version that an OCI runtime prints has known escapes. Other programs than runc and crun are not assessed.
func escapes(output string) (detail string, found bool) {
	match := runtimeVersion.FindStringSubmatch(output)
	if match == nil {
		return "", false
	}
	name, have := match[1], parseVersion(match)
	safe := safeVersions[name]
	for i, text := range safe {
		lowest := parseVersion(runtimeVersion.FindStringSubmatch(name + " version " + text))
		last := i == len(safe)-1
		if have.compare(lowest) >= 0 && (last || have.major == lowest.major && have.minor == lowest.minor) {
			return "", false
		}
	}
	detail = fmt.Sprintf("has known container escapes, fixed in %s", strings.Join(safe, ", "))
	if own := distribution(output); own != "" {
		detail += fmt.Sprintf("; distribution package %s may include the fixes", own)
	}
	return detail, true
}

// packageVersion matches the version of a package. Upstream prints a hash, or one after a tag such as v1.1.15.
var packageVersion = regexp.MustCompile(`^\d+\.\d`)

// distribution returns the package version that Debian and its derivatives print as the commit, such as 1.1.5+ds1-1+deb12u1.
func distribution(output string) string {
	for line := range strings.Lines(output) {
		if commit, ok := strings.CutPrefix(strings.TrimSpace(line), "commit: "); ok && packageVersion.MatchString(commit) {
			return commit
		}
	}
	return ""
}

package spec

import (
	"cmp"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podstead/podstead/internal/lazyregexp"
)

// A short form is a notation of TOML files with exactly one long form, the notation of the Pod API. expand replaces short forms before
// anything else reads the tree, and shorten (see shorten.go) does the opposite. Manifests in YAML and JSON have no short forms.

// shortPort matches [IP:][HOST:]CONTAINER[/PROTOCOL]. An IPv6 address is in brackets.
var shortPort = lazyregexp.New(`^(?:(?:(\[[0-9A-Fa-f:.]+\]|[0-9.]+):)?([1-9][0-9]{0,4}):)?([1-9][0-9]{0,4})(?:/(tcp|udp|sctp))?$`)

const portForms = `"80", "8080:80", "127.0.0.1:8080:80", or one of these with "/udp" or "/sctp"`

// parsePort returns the fields of the short form of a port. The message is empty if the text is one.
func parsePort(text string) (pairs []pair, message, hint string) {
	m := shortPort.FindStringSubmatch(text)
	if m == nil {
		return nil, "Invalid value: " + quote(text) + ": must be " + portForms, portHint(text)
	}
	for _, number := range m[2:4] {
		if n, _ := strconv.Atoi(number); n > 65535 {
			return nil, "Invalid value: " + quote(text) + ": ports " + inRange(1, 65535), ""
		}
	}
	container, _ := strconv.ParseInt(m[3], 10, 64)
	pairs = []pair{{"containerPort", container}}
	if m[2] != "" {
		host, _ := strconv.ParseInt(m[2], 10, 64)
		pairs = append(pairs, pair{"hostPort", host})
	}
	if m[1] != "" {
		address, err := netip.ParseAddr(strings.Trim(m[1], "[]"))
		if err != nil || address.Is6() != (m[1][0] == '[') {
			return nil, "Invalid value: " + quote(text) + ": " + quote(m[1]) + " must be an IP address", ""
		}
		pairs = append(pairs, pair{"hostIP", strings.Trim(m[1], "[]")})
	}
	if m[4] != "" {
		pairs = append(pairs, pair{"protocol", strings.ToUpper(m[4])})
	}
	return pairs, "", ""
}

var (
	portRange  = lazyregexp.New(`[0-9]-[0-9]`)
	bareIPv6   = lazyregexp.New(`^([0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f.]*):([0-9]+:[0-9]+(?:/[a-z]+)?)$`)
	randomPort = lazyregexp.New(`^([0-9.]+)::([0-9]+)|^:([0-9]+)`)
)

// portHint tells how to write what is almost the short form of a port; it may be empty.
func portHint(text string) string {
	base, protocol, _ := strings.Cut(text, "/")
	switch lower := strings.ToLower(protocol); {
	case portRange.MatchString(text):
		return "write an entry for each port"
	case strings.ContainsAny(text, "${}"):
		return "write the number: variables are not replaced"
	case randomPort.MatchString(text):
		return "write the port of the host: it is not chosen"
	case protocol != lower && shortPort.MatchString(base+"/"+lower):
		return "write " + strconv.Quote(base+"/"+lower)
	case strings.TrimSpace(text) != text && shortPort.MatchString(strings.TrimSpace(text)):
		return "write " + strconv.Quote(strings.TrimSpace(text))
	}
	if m := bareIPv6.FindStringSubmatch(text); m != nil {
		if _, err := netip.ParseAddr(m[1]); err == nil {
			return "write " + strconv.Quote("["+m[1]+"]:"+m[2])
		}
	}
	if len(validation.IsValidPortName(text)) == 0 {
		return "write { name = " + strconv.Quote(text) + ", containerPort = NUMBER }"
	}
	return ""
}

// shortRequest matches [SCHEME:][//]:PORT[/PATH] of httpGet.
var shortRequest = lazyregexp.New(`^(?:(https?)://)?:([^:/?#]+)(/.*)?$`)

const requestForms = `":8080/healthz", ":http/healthz" with the name of a port, or "https://:8443/healthz"`

// parseRequest returns the fields of the short form of httpGet. The message is empty if the text is one. ports are those of the container.
func parseRequest(text string, ports *node) (pairs []pair, message, hint string) {
	m := shortRequest.FindStringSubmatch(text)
	if m == nil {
		return nil, "Invalid value: " + quote(text) + ": must be " + requestForms, requestHint(text, ports)
	}
	if m[3] != "" {
		pairs = append(pairs, pair{"path", m[3]})
	}
	port, message := parsePortOrName(m[2])
	if message != "" {
		return nil, "Invalid value: " + quote(text) + ": " + message, ""
	}
	pairs = append(pairs, pair{"port", port})
	if m[1] != "" {
		pairs = append(pairs, pair{"scheme", strings.ToUpper(m[1])})
	}
	return pairs, "", ""
}

// parsePortOrName returns the number, as int64, or the name of a port.
func parsePortOrName(text string) (port any, message string) {
	number, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err == nil && text == strconv.FormatInt(number, 10) && number >= 1 && number <= 65535:
		return number, ""
	case len(validation.IsValidPortName(text)) == 0:
		return text, ""
	}
	return nil, quote(text) + " " + badPort
}

var requestURL = lazyregexp.New(`^(https?)://([^/:?#]+|\[[^\]]*\])(?::([^/:?#]+))?(/.*)?$`)

// requestHint tells how to write what is almost the short form of httpGet; it may be empty.
func requestHint(text string, ports *node) string {
	if m := requestURL.FindStringSubmatch(text); m != nil && len(text) <= 64 {
		scheme, port := "", m[3]
		if m[1] == "https" {
			scheme = "https://"
		}
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[m[1]]
		}
		return "write " + strconv.Quote(scheme+":"+port+m[4]) + ": the request goes to the pod; set host in the long form for another host"
	}
	if strings.HasPrefix(text, "/") && len(text) <= 64 {
		return "write the port before the path: " + strconv.Quote(":"+firstPort(ports)+text)
	}
	if _, message := parsePortOrName(text); message == "" {
		return "write " + strconv.Quote(":"+text)
	}
	return ""
}

// firstPort returns the number of the first port of a container, as an example for hints.
func firstPort(ports *node) string {
	for _, c := range items(ports) {
		if n := c.child("containerPort"); n != nil && n.kind == kindInteger {
			return fmt.Sprint(n.value)
		}
	}
	return "8080"
}

// isShortPath reports whether a text is the short form of a host path: a path that cannot be meant as the name of a volume.
func isShortPath(text string) bool {
	return text == "." || text == ".." || strings.HasPrefix(text, "/") || strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../")
}

var notOfName = lazyregexp.New(`[^a-z0-9.-]+`)

// envFileName returns the name of the config map that the short form envFile of a container declares: the base name of the file, as a DNS
// subdomain. Empty: there is none.
func envFileName(path string) string {
	name := strings.Trim(notOfName.ReplaceAllString(strings.ToLower(filepath.Base(path)), "-"), ".-")
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return ""
	}
	return name
}

// handlers are the tables of a container that have the short forms of actions.
func handlers(c *node) []*node {
	list := []*node{c.child("livenessProbe"), c.child("readinessProbe"), c.child("startupProbe")}
	if hooks := c.child("lifecycle"); hooks != nil && hooks.kind == kindTable {
		list = append(list, hooks.child("postStart"), hooks.child("preStop"))
	}
	return slices.DeleteFunc(list, func(n *node) bool { return n == nil || n.kind != kindTable })
}

// longHint shows the long form of a short one in a manifest; empty: it is none.
func longHint(f format, n *node) string {
	if f == formatTOML || n.parent == nil {
		return ""
	}
	text, _ := n.value.(string)
	if len(text) > 64 {
		return ""
	}
	var table string
	switch n.key {
	case "httpGet":
		pairs, _, _ := parseRequest(text, nil)
		table = f.table(pairs)
	case "tcpSocket", "grpc":
		port, message := parsePortOrName(cmp.Or(text, n.text))
		if _, isName := port.(string); message == "" && (!isName || n.key == "tcpSocket") {
			table = f.table([]pair{{"port", port}})
		}
	case "exec":
		if isComposeList(n) && len(n.items) <= maxExampleItems {
			table = "{" + f.assign("command", inline(n)) + "}"
		}
	}
	if table == "" {
		return ""
	}
	return "write " + f.assign(n.key, table)
}

// maxExampleItems bounds the lists in hints.
const maxExampleItems = 8

// longListHint shows the list for a table of volumes or secrets in a manifest; empty: it has no short forms.
func longListHint(f format, n *node) string {
	if f == formatTOML || n.key != "volumes" && n.key != "secrets" || len(n.items) == 0 || len(n.items) > maxExampleItems {
		return ""
	}
	var list []string
	for _, c := range n.items {
		name := f.assign("name", strconv.Quote(c.key))
		switch text := str(c); {
		case len(c.key) > 64 || len(text) > 64:
			return ""
		case n.key == "secrets" && c.kind == kindString:
			list = append(list, "{"+name+", "+f.assign("envFile", strconv.Quote("FILE"))+"}")
		case n.key == "volumes" && c.kind == kindTable && len(c.items) == 0:
			list = append(list, "{"+name+", "+f.assign("persistentVolumeClaim", f.table([]pair{{"claimName", c.key}}))+"}")
		case n.key == "volumes" && c.kind == kindString && isShortPath(text):
			list = append(list, "{"+name+", "+f.assign("hostPath", f.table([]pair{{"path", text}}))+"}")
		default:
			return ""
		}
	}
	return "write " + f.assign(n.key, "["+strings.Join(list, ", ")+"]")
}

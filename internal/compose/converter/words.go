package converter

import (
	"strings"

	"github.com/podstead/podstead/internal/lazyregexp"
)

// rewording replaces an error of the library by one that names the key first.
type rewording struct {
	pattern *lazyregexp.Regexp
	text    string // with the groups of the pattern
	hint    string
}

// rewordings are applied in this order, each to the result of those before it.
var rewordings = []rewording{
	{pattern: lazyregexp.New(`: invalid compose project$`)},
	{pattern: lazyregexp.New(`^validating [^:]+: `)},
	{lazyregexp.New(`^(\S+) false schema$`), "$1: unknown key", ""},
	// The position of a value after decoding: 'services[web].mem_limit' invalid size: 'lots'.
	{lazyregexp.New(`^decoding failed due to the following error\(s\): '(\w+)\[([^\]]+)\](\S*)' (?:time: )?`), "$1.$2$3: ", ""},
	{pattern: lazyregexp.New(`\berror while interpolating (\S+: )`), text: "$1"},
	{
		lazyregexp.New(`: required variable (\w+) is missing a value(?:: (.*))?$`),
		": variable $1 is not set: $2", "set it, or write it into .env",
	},
	{lazyregexp.New(`: failed to cast to expected type: strconv\.\w+: parsing "(.*)": .*$`), `: must be a number, found "$1"`, ""},
	{lazyregexp.New(`: failed to cast to expected type: invalid boolean: (.*)$`), `: must be true or false, found "$1"`, ""},
	{lazyregexp.New(`: invalid size: '(.*)'$`), `: must be a size such as 64m, found "$1"`, ""},
	{lazyregexp.New(`: invalid duration "(.*)"$`), `: must be a duration such as 1m30s, found "$1"`, ""},
	{lazyregexp.New(`^([^\s:]+) must be a (.*)$`), "$1: must be a $2", ""},
	{
		lazyregexp.New(`^service "(.+)" depends on undefined service "(.+)"$`),
		`services.$1.depends_on: there is no service "$2", or its profile is not selected`, "",
	},
	{
		lazyregexp.New(`^service "(.+)" refers to undefined (network|volume|config|secret) (\S+)$`),
		`services.$1.${2}s: there is no $2 "$3"`, "define it at the top level of the file",
	},
	{
		lazyregexp.New(`^service "(.+)" has neither an image nor a build context specified$`),
		"services.$1: image: Required value", "",
	},
	{
		lazyregexp.New("^service (.+) declares mutually exclusive `network_mode` and `networks`$"),
		"services.$1: network_mode and networks cannot be combined", "",
	},
	{lazyregexp.New(`: can't set distinct values on '(\S+)' and '(\S+)'$`), ": $1 and $2 have different values", "remove one of them"},
}

// typeWords are the names of types in the schema, as YAML has them.
var typeWords = strings.NewReplacer("must be a array", "must be a list", "must be a object", "must be a mapping",
	"must be a integer", "must be a whole number", " array", " list", " object", " mapping", " integer", " whole number")

// reword returns an error of the library as a person would write it.
func reword(text string) (message, hint string) {
	for _, r := range rewordings {
		if !r.pattern.MatchString(text) {
			continue
		}
		if r.hint != "" {
			hint = r.hint
		}
		text = r.pattern.ReplaceAllString(text, r.text)
	}
	if before, types, found := strings.Cut(text, ": must be a "); found && !strings.Contains(types, "found") {
		text = before + typeWords.Replace(": must be a "+types)
	}
	return strings.TrimSuffix(text, ": "), hint
}

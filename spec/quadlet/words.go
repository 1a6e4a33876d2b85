package quadlet

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

var errQuote = errors.New("a quote is not closed")

// splitWords splits a value as systemd does (extract_first_word with unquoting and C escapes). Unknown escapes stay as they are.
func splitWords(value string) ([]string, error) {
	var words []string
	var word strings.Builder
	in := false
	var quote byte
	for i := 0; i < len(value); {
		c := value[i]
		switch {
		case c == '\\' && i+1 < len(value):
			text, size := unescape(value[i:])
			word.WriteString(text)
			in = true
			i += size
			continue
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, in = c, true
		case quote == 0 && strings.IndexByte(" \t\n\r", c) >= 0:
			if in {
				words = append(words, word.String())
				word.Reset()
			}
			in = false
		default:
			word.WriteByte(c)
			in = true
		}
		i++
	}
	if quote != 0 {
		return nil, errQuote
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}

var escapes = map[byte]string{
	'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '\\': `\`, '"': `"`, '\'': "'", 's': " ",
}

// unescape returns what an escape stands for, and its length.
func unescape(text string) (string, int) {
	c := text[1]
	if plain, is := escapes[c]; is {
		return plain, 2
	}
	digits, base, from := 0, 16, 2
	switch {
	case c == 'x':
		digits = 2
	case c == 'u':
		digits = 4
	case c == 'U':
		digits = 8
	case c >= '0' && c <= '7':
		digits, base, from = 3, 8, 1
	}
	if digits == 0 || len(text) < from+digits {
		return text[:1], 1
	}
	n, err := strconv.ParseUint(text[from:from+digits], base, 32)
	if err != nil || n == 0 || n > utf8.MaxRune || (c == 'u' || c == 'U') && !utf8.ValidRune(rune(n)) || base == 8 && n > 255 {
		return text[:1], 1
	}
	if c == 'u' || c == 'U' || n < utf8.RuneSelf {
		return string(rune(n)), from + digits
	}
	return text[:1], 1 // a byte that is no character: pod files are UTF-8
}

package settings

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseProperties reads a Java properties file (broker.conf, client.conf): "key=value", "key: value" or "key value", lines
// that begin with # or ! are comments, a backslash at the end continues a line. Name is for messages. Entries keep the order
// of the file, repeated keys included.
func ParseProperties(name, text string) ([]Entry, error) {
	var entries []Entry
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimLeft(lines[i], " \t\f")
		where := fmt.Sprintf("%s:%d", name, i+1)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for continued(line) {
			line = line[:len(line)-1]
			if i+1 == len(lines) {
				break
			}
			i++
			line += strings.TrimLeft(lines[i], " \t\f")
		}
		key, value := cutProperty(line)
		key, err := unescape(key)
		if err != nil {
			return nil, fmt.Errorf("%s: key: %w", where, err)
		}
		if value, err = unescape(value); err != nil {
			return nil, fmt.Errorf("%s: value of %s: %w", where, key, err)
		}
		entries = append(entries, Entry{Key: key, Text: value, Where: where})
	}
	return entries, nil
}

// continued says whether a line ends in an odd number of backslashes.
func continued(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// cutProperty splits at the first = or : or blank that is not escaped; blanks around the separator belong to nobody.
func cutProperty(line string) (key, value string) {
	end := len(line)
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			i++
			continue
		}
		if strings.IndexByte("=: \t\f", line[i]) >= 0 {
			end = i
			break
		}
	}
	value = strings.TrimLeft(line[end:], " \t\f")
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], " \t\f")
	}
	return line[:end], value
}

func unescape(text string) (string, error) {
	if !strings.Contains(text, `\`) {
		return text, nil
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			b.WriteByte(text[i])
			continue
		}
		if i++; i == len(text) {
			break
		}
		switch c := text[i]; c {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			code, err := strconv.ParseUint(text[i+1:min(i+5, len(text))], 16, 16)
			if err != nil || len(text) < i+5 {
				return "", fmt.Errorf(`%q after a backslash: it must be u and four hexadecimal digits`, text[i:min(i+5, len(text))])
			}
			b.WriteRune(rune(code))
			i += 4
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

package mycnf

import "strconv"

// Plain is a value without suffixes and words, as SET GLOBAL and the parameter groups of managed servers take
// it: bytes for a size, 1 or 0 for a switch. Any other value stays.
func Plain(name, value string) string {
	switch catalogue()[Normalise(name)].Kind {
	case KindBool:
		switch onOff(value) {
		case "ON":
			return "1"
		case "OFF":
			return "0"
		}
	case KindSize:
		if n, err := ParseSize(value); err == nil {
			return strconv.FormatInt(n, 10)
		}
	}
	return value
}

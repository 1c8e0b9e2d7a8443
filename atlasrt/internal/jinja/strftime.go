package jinja

import (
	"fmt"
	"strconv"
	"time"
)

// strftime writes the time of the render in the C locale.
func (r *run) strftime(layout Str) Str {
	out := textBuilder{run: r}
	text := layout.text
	for i := 0; i < len(text); i++ {
		if text[i] != '%' || i+1 == len(text) {
			out.add(layout.slice(i, i+1))
			continue
		}
		start := i
		i++
		padded := true
		if text[i] == '-' && i+1 < len(text) {
			padded = false
			i++
		}
		field, ok := timeField(r.now, text[i])
		if !ok {
			out.add(layout.slice(start, i+1))
			continue
		}
		for !padded && len(field) > 1 && (field[0] == '0' || field[0] == ' ') && isDigit(field[1]) {
			field = field[1:]
		}
		out.add(layout.with(field))
	}
	return out.str()
}

// timeField is one conversion of strftime.
func timeField(t time.Time, code byte) (string, bool) {
	hour12 := (t.Hour()+11)%12 + 1
	switch code {
	case 'Y':
		return strconv.Itoa(t.Year()), true
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100), true
	case 'y':
		return fmt.Sprintf("%02d", t.Year()%100), true
	case 'm':
		return fmt.Sprintf("%02d", t.Month()), true
	case 'd':
		return fmt.Sprintf("%02d", t.Day()), true
	case 'e':
		return fmt.Sprintf("%2d", t.Day()), true
	case 'H':
		return fmt.Sprintf("%02d", t.Hour()), true
	case 'k':
		return fmt.Sprintf("%2d", t.Hour()), true
	case 'I':
		return fmt.Sprintf("%02d", hour12), true
	case 'l':
		return fmt.Sprintf("%2d", hour12), true
	case 'M':
		return fmt.Sprintf("%02d", t.Minute()), true
	case 'S':
		return fmt.Sprintf("%02d", t.Second()), true
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 'j':
		return fmt.Sprintf("%03d", t.YearDay()), true
	case 'p':
		return t.Format("PM"), true
	case 'P':
		return t.Format("pm"), true
	case 'a':
		return t.Format("Mon"), true
	case 'A':
		return t.Format("Monday"), true
	case 'b', 'h':
		return t.Format("Jan"), true
	case 'B':
		return t.Format("January"), true
	case 'w':
		return strconv.Itoa(int(t.Weekday())), true
	case 'u':
		return strconv.Itoa((int(t.Weekday())+6)%7 + 1), true
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-int(t.Weekday()))/7), true
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(int(t.Weekday())+6)%7)/7), true
	case 'V':
		_, week := t.ISOWeek()
		return fmt.Sprintf("%02d", week), true
	case 'G':
		year, _ := t.ISOWeek()
		return strconv.Itoa(year), true
	case 's':
		return strconv.FormatInt(t.Unix(), 10), true
	case 'F':
		return t.Format("2006-01-02"), true
	case 'T', 'X':
		return t.Format("15:04:05"), true
	case 'R':
		return t.Format("15:04"), true
	case 'r':
		return t.Format("03:04:05 PM"), true
	case 'D', 'x':
		return t.Format("01/02/06"), true
	case 'c':
		return t.Format("Mon Jan _2 15:04:05 2006"), true
	case 'z', 'Z':
		return "", true // the time that templates see has no zone
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case '%':
		return "%", true
	}
	return "", false
}

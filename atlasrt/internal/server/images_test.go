package server

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strings"
)

// inData is what a client sends for an image of some bytes.
func inData(kind, bytes string) [4]says {
	return image("data:" + kind + ";base64," + base64.StdEncoding.EncodeToString([]byte(bytes)))
}

// portable is the beginning of a PNG image of a size: bits for each channel, 2 for colours or 6 with alpha, and whether it is interlaced.
func portable(width, height uint32, bits, colours, interlaced byte) string {
	header := append([]byte("IHDR"), binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)...)
	header = append(header, bits, colours, 0, 0, interlaced)
	return "\x89PNG\r\n\x1a\n\x00\x00\x00\x0d" + string(binary.BigEndian.AppendUint32(header, crc32.ChecksumIEEE(header)))
}

// imageVerdicts are about images that a decoder would have to be careful with. No model here reads images: nothing is decoded, and each is refused
// before.
func imageVerdicts() []verdict {
	const jpeg = "\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
	frame := "!\xf9\x04\x00\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00"
	return []verdict{
		{"T093 an image of no size", 400, inData("image/png", portable(0, 0, 8, 2, 0))},
		{"T093 an image of one pixel", 400, inData("image/png", portable(1, 1, 8, 2, 0))},
		{"T093 an image of one column", 400, inData("image/png", portable(1, 65535, 8, 2, 0))},
		{"T093 an image of one line", 400, inData("image/png", portable(65535, 1, 8, 2, 0))},
		{"T093 an image of thousands of millions", 400, inData("image/png", portable(65535, 65535, 8, 6, 0))},
		{"T094 an image that unpacks without end", 400, inData("image/png", portable(30000, 30000, 16, 6, 0)+strings.Repeat("\x00", 10_000))},
		{"T094 ten thousand images in one", 400, inData("image/gif", "GIF89a\x10\x27\x10\x27\x80\x00\x00\x00\x00\x00\xff\xff\xff"+strings.Repeat(frame, 10_000)+";")},
		{"T095 sixteen bits, interlaced", 400, inData("image/png", portable(8, 8, 16, 6, 1))},
		{"T095 four inks, turned", 400, inData("image/jpeg", "\xff\xd8\xff\xe1\x00\x22Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00\xff\xc0\x00\x14\x08\x00\x08\x00\x08\x04")},
		{"T095 a moving image", 400, inData("image/webp", "RIFF\x24\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x07\x00\x00\x07\x00\x00ANIM\x06\x00\x00\x00")},
		{"T096 half an image", 400, inData("image/jpeg", jpeg)},
		{"T096 an image of another form", 400, inData("image/jp2", "\x00\x00\x00\x0cjP  \r\n\x87\n")},
		{"T096 a page of fax", 400, inData("image/tiff", "II*\x00\xff\xff\xff\xff")},
		{"T098 a film", 400, image("data:video/jpeg;base64," + strings.Repeat(base64.StdEncoding.EncodeToString([]byte(jpeg+"\xff\xd9\x00")), 10_000))},
		{"T100 an image a hundred times", 400, part(hundred(`{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}`),
			hundred(`{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="}`),
			hundred(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}`))},
	}
}

// hundred is a part a hundred times.
func hundred(part string) string { return strings.TrimSuffix(strings.Repeat(part+",", 100), ",") }

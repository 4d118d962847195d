//! The channel-blocked activation layout.

/// A batch of images in blocked layout: `[batch][channels / block][height][width][block]`, all f32.
///
/// The last block of channels is padded to `block` lanes. Padding lanes have unspecified values, on which no result in another lane depends. Images start
/// `batch_stride` elements apart. This is more than the size of an image if the tensor is a range of channel blocks of a larger tensor (concatenation without
/// copies).
///
/// `N` is the type of sizes that can be arguments of the code. It is `i64` in plans, and a constant or an emitted value in the code generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockedShape<N = i64> {
    /// Number of images.
    pub batch: N,
    /// Number of channels, without padding.
    pub channels: N,
    /// Number of rows.
    pub height: N,
    /// Number of columns.
    pub width: N,
    /// Number of channels in a block: the lanes of the target's vectors.
    pub block: i64,
    /// Distance from one image to the next, in elements.
    pub batch_stride: N,
}

impl<N> BlockedShape<N> {
    /// Returns the shape with `f` applied to the numbers of images and channels, the height, the width and the batch stride, in this order.
    pub fn map<M>(&self, f: &mut impl FnMut(&N) -> M) -> BlockedShape<M> {
        BlockedShape {
            batch: f(&self.batch),
            channels: f(&self.channels),
            height: f(&self.height),
            width: f(&self.width),
            block: self.block,
            batch_stride: f(&self.batch_stride),
        }
    }
}

impl BlockedShape {
    /// Returns the number of channel blocks.
    pub fn channel_blocks(&self) -> i64 {
        (self.channels + self.block - 1) / self.block
    }

    /// Returns the number of channels, padding included.
    pub fn padded_channels(&self) -> i64 {
        self.channel_blocks() * self.block
    }

    /// Returns the shape of images that are stored without gaps.
    pub fn dense(batch: i64, channels: i64, height: i64, width: i64, block: i64) -> BlockedShape {
        let mut shape = BlockedShape {
            batch,
            channels,
            height,
            width,
            block,
            batch_stride: 0,
        };
        shape.batch_stride = shape.image_elements();
        shape
    }

    /// Returns the number of elements of one row of one channel block.
    pub fn row_elements(&self) -> i64 {
        self.width * self.block
    }

    /// Returns the number of elements of one channel block, which is the distance to the next block.
    pub fn plane_elements(&self) -> i64 {
        self.height * self.row_elements()
    }

    /// Returns the number of elements of one image, padding lanes included.
    pub fn image_elements(&self) -> i64 {
        self.channel_blocks() * self.plane_elements()
    }

    /// Returns the number of elements from the first to the last image, gaps included: the size of a buffer for the batch.
    pub fn elements(&self) -> i64 {
        (self.batch - 1).max(0) * self.batch_stride + self.image_elements()
    }

    /// Returns the size of a buffer for the batch in bytes.
    pub fn bytes(&self) -> usize {
        self.elements() as usize * 4
    }
}
